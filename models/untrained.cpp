#include "models/untrained.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_set>

namespace sibyl {
namespace {

// By tensor: does the output need it?
std::vector<bool> needed_by(const Graph& graph, TensorId output) {
  std::vector<bool> needed(graph.tensors().size(), false);
  std::vector<TensorId> next{output};
  while (!next.empty()) {
    const TensorId id = next.back();
    next.pop_back();
    if (!id.valid() || needed[id.index()]) continue;
    needed[id.index()] = true;
    const OperationId producer = graph.producer(id);
    if (!producer.valid()) continue;
    for (const TensorId in : graph[producer].inputs) next.push_back(in);
  }
  return needed;
}

}  // namespace

std::vector<UntrainedOutput> untrained_outputs(const Graph& whole, const Graph& trained) {
  std::unordered_set<std::string_view> known;  // trained, or told of already
  for (const Tensor& tensor : trained.tensors()) known.insert(tensor.name);
  std::vector<UntrainedOutput> result;
  for (const TensorId output : whole.outputs) {
    const std::vector<bool> needed = needed_by(whole, output);
    UntrainedOutput left{whole[output].name, 0, 0};
    for (std::size_t t = 0; t < needed.size(); ++t) {
      const Tensor& tensor = whole.tensors()[t];
      if (!needed[t] || tensor.kind != TensorKind::parameter || !known.insert(tensor.name).second) continue;
      left.parameters += 1;
      left.elements += element_count(tensor.shape);
    }
    if (left.parameters > 0) result.push_back(std::move(left));
  }
  return result;
}

std::string untrained_sentence(const UntrainedOutput& left) {
  const bool one = left.parameters == 1;
  return fmt::format("{} parameter{} of {} elements only reach{} output {}, which no loss is attached to",
                     left.parameters, one ? "" : "s", left.elements, one ? "es" : "", left.output);
}

}  // namespace sibyl

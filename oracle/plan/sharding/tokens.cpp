#include "oracle/plan/sharding/tokens.h"

#include <algorithm>
#include <set>

#include "oracle/plan/attention_cores.h"

namespace sibyl {
namespace {

bool is_embedding(const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  return compute && std::holds_alternative<Embedding>(compute->attributes);
}

// Ids may be viewed, converted, or counted from a rank's own first word before they are looked up.
bool hands_on_ids(const Step& step) {
  if (const auto* exchange = std::get_if<Exchange>(&step)) return exchange->forward.motion == Motion::own_numbers;
  const auto& op = std::get<Compute>(step).attributes;
  return std::holds_alternative<Reshape>(op) || std::holds_alternative<Cast>(op);
}

std::vector<std::optional<std::size_t>> makers(const Stage& stage) {
  std::vector<std::optional<std::size_t>> result(stage.tensors.size());
  for (std::size_t i = 0; i < stage.steps.size(); ++i)
    for (const LocalTensorId out : outputs_of(stage.steps[i]))
      if (out.valid()) result[out.index()] = i;
  return result;
}

}  // namespace

std::size_t ids_operand(const Step& lookup) { return is_embedding(lookup) ? 1 : 0; }

std::optional<std::size_t> heads_dim(const Shape& queries, const Shape& keys) {
  if (queries.size() != keys.size() || queries.size() < 3) return std::nullopt;
  for (std::size_t dim = queries.size() - 2; dim-- > 1;)
    if (queries[dim] > 1 && keys[dim] > 1) return dim;
  const bool flat = queries.size() == 3 || queries[1] == 1;  // [B H, S, D], or [B H, 1, S, D]
  return flat && queries[0] == keys[0] ? std::optional<std::size_t>(0) : std::nullopt;
}

std::optional<std::size_t> Tokens::dim_of(LocalTensorId tensor) const {
  const auto known = std::ranges::find(ids, tensor, &Source::tensor);
  return known == ids.end() ? std::nullopt : std::optional(known->dim);
}

Tokens::Tokens(const Stage& stage) : roles(stage.steps.size(), Role::any) {
  std::set<std::int64_t> lengths;
  for (const AttentionCore& core : attention_cores(stage)) {
    roles[core.scores] = core.fused() ? Role::attention : Role::scores;
    if (!core.fused()) roles[core.mix] = Role::mix;
    const Shape& queries = stage[inputs_of(stage.steps[core.scores]).front()].shape;
    if (queries.size() >= 2) lengths.insert(queries[queries.size() - 2]);
  }
  const auto maker = makers(stage);
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    if (!is_embedding(stage.steps[i])) continue;
    std::size_t first = i;
    LocalTensorId read = inputs_of(stage.steps[i])[1];
    while (const auto made = maker[read.index()]) {
      if (!hands_on_ids(stage.steps[*made])) break;
      first = *made;
      read = inputs_of(stage.steps[first]).front();
    }
    const LocalTensor& source = stage[read];
    if (maker[read.index()] || source.shape.empty() || roles[first] != Role::any) continue;
    // A constant that has a number for each token is one of places; others may be of pairs of them.
    const bool of_samples = source.kind == TensorKind::input && source.shape.size() > 1;
    const bool of_places = source.kind == TensorKind::buffer && element_count(source.shape) == source.shape.back();
    if ((!of_samples && !of_places) || !lengths.contains(source.shape.back())) continue;
    roles[first] = Role::lookup;
    ids.push_back({read, source.shape.size() - 1});
  }
  for (std::size_t t = 0; t < stage.tensors.size(); ++t) {
    const LocalTensor& tensor = stage.tensors[t];
    if (tensor.kind == TensorKind::input && is_floating(tensor.dtype) && tensor.shape.size() == 3 &&
        lengths.contains(tensor.shape[1]))
      features.push_back({LocalTensorId{t}, 1});
  }
}

}  // namespace sibyl

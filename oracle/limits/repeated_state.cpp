// Weights, gradients and optimizer state that other devices hold as well.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "oracle/limits/finders.h"
#include "oracle/plan/zero.h"

namespace sibyl::limits {
namespace {

// Of a tensor: the devices that hold it, and among how many of them each dealt out what it needs (ZeRO).
struct Holders {
  int all = 1;
  int of_weights = 1, of_gradients = 1, of_state = 1;  // parts
};

// Whoever differs along an axis that does not cut it holds the same of it.
int holders_of(const LocalTensor& tensor, const Mesh& mesh) {
  int holders = 1;
  for (const Mesh::Extent& extent : mesh.extents) {
    const bool cut = std::any_of(tensor.cuts.begin(), tensor.cuts.end(),
                                 [&](const PartOf& part) { return part.axis == extent.axis; });
    if (!cut && extent.axis != MeshAxis::pipeline) holders *= extent.size;
  }
  return holders;
}

std::vector<Holders> holders_of(const Stage& stage, const Mesh& mesh) {
  std::vector<Holders> result;
  for (const LocalTensor& tensor : stage.tensors) result.push_back({holders_of(tensor, mesh)});
  for (std::size_t s = 0; s < stage.gradients.size(); ++s) {
    const GradientSync& sync = stage.gradients[s];
    for (std::size_t b = 0; b < sync.buckets.size(); ++b)
      for (const LocalTensorId parameter : sync.buckets[b].parameters) {
        Holders& own = result[parameter.index()];
        own.all *= std::max(1, static_cast<int>(sync.stages.size()));
        own.of_state = sync.parts;
        own.of_gradients = sync.buffers > 0 ? sync.parts : 1;
        own.of_weights = has_unit(stage, s, b) ? sync.parts : 1;
      }
  }
  return result;
}

// How much of one kind of state a device holds, and how much of that others hold, too.
class Repeated {
 public:
  void add(double bytes, int holders, int parts) {
    const double own = bytes / parts;
    const int copies = holders / parts;
    held_ += own;
    if (copies == 1) return;
    again_ += own;
    fewest_ = fewest_ == 0 ? copies : std::min(fewest_, copies);
    most_ = std::max(most_, copies);
  }
  [[nodiscard]] bool any() const { return again_ > 0; }
  [[nodiscard]] double share() const { return any() ? again_ / held_ : 0.0; }
  [[nodiscard]] int fewest() const { return fewest_; }
  [[nodiscard]] int most() const { return most_; }

 private:
  double held_ = 0, again_ = 0;
  int fewest_ = 0, most_ = 0;
};

struct RepeatedState {
  Repeated weights, gradients, optimizer;

  void add(const Stage& stage, const Mesh& mesh) {
    const std::vector<Holders> holders = holders_of(stage, mesh);
    for (std::size_t i = 0; i < stage.tensors.size(); ++i) {
      const LocalTensor& tensor = stage.tensors[i];
      const auto elements = static_cast<double>(element_count(tensor.shape));
      const double bytes = elements * size_in_bytes(tensor.dtype);
      const auto& [all, of_weights, of_gradients, of_state] = holders[i];
      if (tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer)
        weights.add(bytes, all, of_weights);
      if (tensor.kind != TensorKind::parameter || !tensor.requires_gradient) continue;
      gradients.add(elements * size_in_bytes(tensor.gradient_type()), all, of_gradients);
      optimizer.add(elements, all, of_state);
    }
  }
  [[nodiscard]] Bytes of(const MemoryBreakdown& m) const {
    return m.weights * weights.share() + m.gradients * gradients.share() + m.optimizer * optimizer.share();
  }
  // "2 to 8 copies of weights and state".
  [[nodiscard]] std::string text() const {
    int fewest = 0, most = 0;
    for (const Repeated* one : {&weights, &gradients, &optimizer}) {
      if (!one->any()) continue;
      fewest = fewest == 0 ? one->fewest() : std::min(fewest, one->fewest());
      most = std::max(most, one->most());
    }
    const bool state = gradients.any() || optimizer.any();
    const char* what = !weights.any() ? "state" : state ? "weights and state" : "weights";
    return fewest == most ? fmt::format("{} copies of {}", most, what)
                          : fmt::format("{} to {} copies of {}", fewest, most, what);
  }
};

// The coordinate of a pipeline whose device is the fullest: the prediction's memory is its.
std::size_t fullest(const Found& f) {
  const std::vector<StageCost>& stages = f.prediction.stages;
  const auto most = std::max_element(stages.begin(), stages.end(),
                                     [](const StageCost& a, const StageCost& b) { return a.memory < b.memory; });
  return most == stages.end() ? 0 : static_cast<std::size_t>(most->coordinate);
}

}  // namespace

void repeated_state(const Found& f, Limits& limits) {
  RepeatedState repeated;
  for (std::size_t s = fullest(f); s < f.plan.stages.size(); s += f.plan.schedule.size())
    repeated.add(f.plan.stages[s], f.plan.mesh);
  const MemoryBreakdown& m = f.prediction.memory;
  const Bytes bytes = repeated.of(m);
  if (bytes.value() <= 0 || m.total.value() <= 0) return;
  limits.push_back({"redundant memory", repeated.text(), bytes.value(), "bytes", bytes / m.total,
                    those_that_suit({{"split weights (tensor, filter)"},
                                     {"sharded state (--zero)", can_shard_more(f.graph, f.plan.strategy)}})});
}

}  // namespace sibyl::limits

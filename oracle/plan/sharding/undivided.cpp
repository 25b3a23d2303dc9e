#include "oracle/plan/sharding/undivided.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "models/shape.h"

namespace sibyl {
namespace {

constexpr std::string_view other_axes = "data=, tensor= and pipeline= divide such a model";

Failure refused(std::string message, std::string_view hint = {}) {
  return fail(ErrorCode::infeasible, std::move(message), "--parallel", std::string(hint));
}

bool is_image(const LocalTensor& tensor, const Policy& policy) {
  return tensor.kind == TensorKind::input && is_floating(tensor.dtype) && tensor.shape.size() >= policy.image_dim + 2;
}

std::int64_t extent_of(const Shape& shape, const Policy& policy) { return shape[shape.size() - policy.image_dim]; }

// The image arrives in parts; what it is made into is not in such parts. `reads` is the first operation that has it.
Failure made_whole(const Graph& graph, const Stage& stage, const Compute& reads, std::int64_t before,
                   const Policy& policy, int ways) {
  const std::string_view name = graph[reads.operation].name, axis = to_string(policy.axis);
  const Shape& result = stage[reads.outputs.front()].shape;
  if (result.size() < policy.image_dim + 2 || extent_of(result, policy) == before)
    return refused(
        fmt::format("'{}' needs the whole {} of an image, {}, which {} ranks cannot divide", name, axis, before, ways),
        other_axes);
  const std::int64_t after = extent_of(result, policy);
  if (after % ways != 0)
    return refused(fmt::format("'{}' makes images of a {} of {}, which cannot be divided into {} equal parts", name,
                               axis, after, ways),
                   other_axes);
  return refused(
      fmt::format("'{}' makes images of a {} of {} from such of {}: {} equal parts of the two do not line up, "
                  "and nothing that follows could be divided",
                  name, axis, after, before, ways),
      "convolutions that pad their images can be; " + std::string(other_axes));
}

Failure undivided_images(const Graph& graph, const Stage& stage, const Policy& policy, int ways) {
  const std::string_view axis = to_string(policy.axis);
  const LocalTensor* smallest = nullptr;  // of those that cannot be divided
  bool any = false;
  for (const LocalTensor& tensor : stage.tensors) {
    if (!is_image(tensor, policy)) continue;
    any = true;
    const std::int64_t extent = extent_of(tensor.shape, policy);
    if (extent % ways != 0 && (smallest == nullptr || extent < extent_of(smallest->shape, policy))) smallest = &tensor;
  }
  if (!any)
    return refused(fmt::format("the model reads no images that have a {} to divide", axis),
                   "spatial= divides images; " + std::string(other_axes));
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    if (compute == nullptr) continue;
    for (const LocalTensorId in : compute->inputs)
      if (in.valid() && is_image(stage[in], policy) && extent_of(stage[in].shape, policy) % ways == 0)
        return made_whole(graph, stage, *compute, extent_of(stage[in].shape, policy), policy, ways);
  }
  if (smallest == nullptr) return refused(fmt::format("no operation reads images whose {} could be divided", axis));
  return refused(fmt::format("'{}' has a {} of {}, which cannot be divided into {} equal parts",
                             graph[smallest->origin].name, axis, extent_of(smallest->shape, policy), ways));
}

// Weights are matrices and more; the largest ones are what an axis would have been for.
struct Weights {
  std::string_view operation;
  Shape shape;
};

std::optional<Weights> largest_weights(const Graph& graph, const Stage& stage) {
  std::optional<Weights> largest;
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    if (compute == nullptr) continue;
    for (const LocalTensorId in : compute->inputs) {
      if (!in.valid() || stage[in].kind != TensorKind::parameter || stage[in].shape.size() < 2) continue;
      if (!largest || element_count(stage[in].shape) > element_count(largest->shape))
        largest = {graph[compute->operation].name, stage[in].shape};
    }
  }
  return largest;
}

}  // namespace

Failure undivided(const Graph& graph, const Stage& stage, const Policy& policy, int ways) {
  if (policy.until.valid())
    return refused(fmt::format("nothing up to '{}' can be divided into {} equal parts by {}=", graph[policy.until].name,
                               ways, to_string(policy.axis)),
                   "leave --split-until out, or name a later operation");
  if (policy.weights == Policy::Weights::image) return undivided_images(graph, stage, policy, ways);
  const std::optional<Weights> largest = largest_weights(graph, stage);
  if (!largest) return refused(fmt::format("the model has no weights that {}= could divide", to_string(policy.axis)));
  return refused(
      fmt::format("nothing in the model can be divided into {} equal parts by {}=: its largest weights, "
                  "those of '{}', are {}",
                  ways, to_string(policy.axis), largest->operation, to_string(largest->shape)));
}

}  // namespace sibyl

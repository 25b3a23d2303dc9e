// Normalisations that ONNX knows as one operator. Those that exporters decompose are put together again by
// models/canonical.
#include <fmt/format.h>

#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

Result<void> check_channels(const Node& node) {
  if (node.rank(0) < 2) return fail("the input has no channels: " + to_string(node.shape(0)));
  return {};
}

// ONNX's momentum weighs the old statistics, PyTorch's the new ones.
Result<Lowering> batch_norm(const Node& node) {
  SIBYL_CHECK(check_channels(node));
  Normalization attributes{NormalizationKind::batch, 1, 1, node.number("epsilon", 1e-5),
                           1.0 - node.number("momentum", 0.9)};
  const Shape channels{node.shape(0)[1]};
  for (std::size_t i = 1; i < 5; ++i)
    if (node.shape(i) != channels)
      return fail(fmt::format("operand {} is {} for {} channels", i, to_string(node.shape(i)), channels[0]));
  Lowering lowering = single(node, attributes, {0, 1, 2, 3, 4}, node.shape(0), node.dtype(0));
  lowering.steps[0].inputs[3].statistic = lowering.steps[0].inputs[4].statistic = true;
  return lowering;
}

Result<Lowering> instance_norm(const Node& node) {
  SIBYL_CHECK(check_channels(node));
  Normalization attributes{NormalizationKind::instance, 1, 1, node.number("epsilon", 1e-5), 0.1};
  return single(node, attributes, {0, 1, 2}, node.shape(0), node.dtype(0));
}

Result<Lowering> layer_norm(const Node& node) {
  SIBYL_TRY(const std::size_t axis, node.front_axis(node.integer("axis", -1)));
  const bool rms = node.op_type() != "LayerNormalization";
  Normalization attributes{rms ? NormalizationKind::rms : NormalizationKind::layer,
                           node.rank(0) - static_cast<std::int64_t>(axis), 1, node.number("epsilon", 1e-5), 0.1};
  if (rms) return single(node, attributes, {0, 1}, node.shape(0), node.dtype(0));
  return single(node, attributes, {0, 1, 2}, node.shape(0), node.dtype(0));
}

// Opset 18 gave a scale per group; since 21 it is per channel, as in PyTorch. Cost and shape are the same.
Result<Lowering> group_norm(const Node& node) {
  SIBYL_CHECK(check_channels(node));
  const std::int64_t groups = node.integer("num_groups", 0);
  if (groups < 1 || node.shape(0)[1] % groups != 0)
    return fail(fmt::format("{} groups do not divide {} channels", groups, node.shape(0)[1]));
  Normalization attributes{NormalizationKind::group, 1, groups, node.number("epsilon", 1e-5), 0.1};
  return single(node, attributes, {0, 1, 2}, node.shape(0), node.dtype(0));
}

Result<Lowering> local_response_norm(const Node& node) {
  SIBYL_CHECK(check_channels(node));
  const std::int64_t size = node.integer("size", 0);
  if (size < 1) return fail(fmt::format("size is {}", size));
  LocalResponseNorm attributes{size, node.number("alpha", 1e-4), node.number("beta", 0.75), node.number("bias", 1.0)};
  return single(node, attributes, {0}, node.shape(0), node.dtype(0));
}

// x + skip [+ bias], then normalised: com.microsoft's fusion, taken apart.
Result<Lowering> skip_norm(const Node& node) {
  const bool rms = node.op_type() == "SkipSimplifiedLayerNormalization";
  const std::size_t bias = rms ? 3 : 4;
  Steps steps(node);
  SIBYL_TRY(Operand sum, steps.binary(BinaryKind::add, steps.input(0), steps.input(1)));
  if (node.has(bias)) {
    SIBYL_TRY(sum, steps.binary(BinaryKind::add, sum, steps.input(bias)));
  }
  const Shape shape = steps.fact(sum).shape;
  Normalization attributes{rms ? NormalizationKind::rms : NormalizationKind::layer, 1, 1, node.number("epsilon", 1e-12),
                           0.1};
  std::vector<Operand> operands{sum, steps.input(2)};
  if (!rms && node.has(3)) operands.push_back(steps.input(3));
  return std::move(steps).result(steps.add(attributes, std::move(operands), shape));
}

}  // namespace

std::span<const Operator> normalization_operators() {
  static constexpr Operator table[] = {
      {"BatchNormalization", batch_norm, 5},
      {"InstanceNormalization", instance_norm, 3},
      {"LayerNormalization", layer_norm, 2},
      {"RMSNormalization", layer_norm, 2},
      {"SimplifiedLayerNormalization", layer_norm, 2},
      {"GroupNormalization", group_norm, 3},
      {"LRN", local_response_norm, 1},
      {"LayerNormalization", layer_norm, 2, "com.microsoft"},
      {"SimplifiedLayerNormalization", layer_norm, 2, "com.microsoft"},
      {"SkipLayerNormalization", skip_norm, 3, "com.microsoft"},
      {"SkipSimplifiedLayerNormalization", skip_norm, 3, "com.microsoft"},
  };
  return table;
}

}  // namespace sibyl::onnx_import

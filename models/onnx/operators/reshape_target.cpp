#include "models/onnx/operators/reshape_target.h"

#include <fmt/format.h>

#include "models/onnx/lowering.h"

namespace sibyl::onnx_import {

Result<Shape> resolve_target(const Shape& input, const Ints& target, bool allow_zero) {
  const auto mismatch = [&] { return fail("cannot reshape " + to_string(input) + " to [" + to_string(target) + "]"); };
  Shape result = target;
  std::optional<std::size_t> rest;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !allow_zero) {
      if (i >= input.size()) return mismatch();
      result[i] = input[i];
    } else if (target[i] == -1) {
      if (rest) return mismatch();
      rest = i;
      result[i] = 1;
    } else if (target[i] < 0) {
      return mismatch();
    }
  }
  if (!is_sane(result)) return mismatch();
  const std::int64_t wanted = element_count(input), given = element_count(result);
  if (rest) {
    if (given == 0 || wanted % given != 0) return mismatch();
    result[*rest] = wanted / given;
  } else if (given != wanted) {
    return mismatch();
  }
  return result;
}

std::optional<std::size_t> batch_axis_after(const Shape& input, std::size_t axis, const Shape& output, const Ints& target,
                                            std::int64_t batch) {
  const std::int64_t before = product(std::span(input).first(axis));
  std::optional<std::size_t> equal, rest, starts, holds;
  std::int64_t left = 1;
  for (std::size_t i = 0; i < output.size(); left *= output[i], ++i) {
    if (output[i] % batch != 0 || left > before || left == 0) continue;
    const bool inside = before / left <= output[i] / batch;  // before * batch <= left * extent
    if (!inside) continue;
    if (left == before && output[i] == batch && !equal) equal = i;
    if (i < target.size() && target[i] == -1 && !rest) rest = i;
    if (left == before && !starts && output[i] > 1) starts = i;
    if (!holds && output[i] > 1) holds = i;
  }
  for (const auto& found : {equal, rest, starts, holds})
    if (found) return found;
  return std::nullopt;
}

Result<Shape> reshape_constant_target(const Node& node, const Ints& target, bool allow_zero) {
  const auto axis = node.batch_axis(0);
  const auto [reference, other] = node.batches();
  auto at_reference = resolve_target(node.fact_at(0, 0).shape, target, allow_zero);
  if (!axis || node.side() == 0 || !at_reference) return resolve_target(node.shape(0), target, allow_zero);
  const auto grown = batch_axis_after(node.fact_at(0, 0).shape, *axis, *at_reference, target, reference);
  if (!grown) return resolve_target(node.shape(0), target, allow_zero);
  Shape result = *at_reference;
  result[*grown] = result[*grown] / reference * other;
  if (!is_sane(result) || element_count(result) != element_count(node.shape(0)))
    return fail(fmt::format("its target [{}] holds the batch of {} in a way that cannot be changed", to_string(target), reference));
  return result;
}

}  // namespace sibyl::onnx_import

#include "models/onnx/operators/reshape_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

std::vector<std::size_t> batch_axes_after(const Shape& input, std::size_t axis, const Shape& output, const Ints& target,
                                          std::int64_t batch) {
  const std::int64_t before = product(std::span(input).first(axis));
  const std::int64_t behind =
      product(std::span(input).first(axis + 1)) / batch;  // the latest place the batch can begin at
  // Candidates by likelihood: exact place first, then places inside the input's axis.
  std::array<std::vector<std::size_t>, 8> ranks;
  std::int64_t left = 1;
  for (std::size_t i = 0; i < output.size(); left *= output[i], ++i) {
    if (left == 0 || output[i] % batch != 0) continue;
    const std::int64_t last = left * (output[i] / batch);
    const bool exact = left <= before && before <= last, inside = !exact && left <= behind && last >= before;
    if (!exact && !inside) continue;
    const std::size_t base = exact ? 0 : 4;
    if (output[i] == batch && (inside || left == before)) ranks[base].push_back(i);
    if (i < target.size() && target[i] == -1) ranks[base + 1].push_back(i);
    if (output[i] > 1 && (inside || left == before)) ranks[base + 2].push_back(i);
    if (output[i] > 1) ranks[base + 3].push_back(i);
  }
  std::vector<std::size_t> result;
  for (const auto& rank : ranks)
    for (const std::size_t i : rank)
      if (std::find(result.begin(), result.end(), i) == result.end()) result.push_back(i);
  return result;
}

Result<Shape> reshape_constant_target(const Node& node, const Ints& target, bool allow_zero) {
  const auto axis = node.batch_axis(0);
  const Shape& input = node.fact_at(0, 0).shape;
  const auto [reference, other] = node.batches();
  auto at_reference = resolve_target(input, target, allow_zero);
  if (!axis || node.side() == 0 || !at_reference) return resolve_target(node.shape(0), target, allow_zero);
  const auto candidates = batch_axes_after(input, *axis, *at_reference, target, reference);
  if (candidates.empty()) return resolve_target(node.shape(0), target, allow_zero);
  const std::string question = fmt::format("{} batch at {} to [{}]", to_string(input), *axis, to_string(target));
  const std::size_t grown = candidates[node.choices().pick(question, candidates.size())];
  Shape result = *at_reference;
  result[grown] = result[grown] / reference * other;
  if (!is_sane(result) || element_count(result) != element_count(node.shape(0)))
    return fail(fmt::format("its target [{}] holds the batch of {} in a way that cannot be changed", to_string(target),
                            reference));
  return result;
}

}  // namespace sibyl::onnx_import

// Padding and interpolation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

// All begins, then all ends, for every axis of x or for the axes listed.
Result<std::pair<Ints, Ints>> read_pads(const Node& node) {
  SIBYL_TRY(auto pads, node.listed(node.attribute("paddings") != nullptr ? "paddings" : "pads", 1));
  SIBYL_TRY(const auto axes, node.listed("axes", 3));
  if (!pads) return fail("it has no pads");
  const std::size_t rank = node.shape(0).size(), listed = axes ? axes->size() : rank;
  if (pads->size() != 2 * listed) return fail(fmt::format("{} pads for {} axes", pads->size(), listed));
  std::pair<Ints, Ints> result{Ints(rank, 0), Ints(rank, 0)};
  for (std::size_t i = 0; i < listed; ++i) {
    std::size_t axis = i;
    if (axes) {
      SIBYL_TRY(axis, node.front_axis((*axes)[i]));
    }
    constexpr std::int64_t most = std::int64_t{1} << 40;
    if (std::abs((*pads)[i]) > most || std::abs((*pads)[listed + i]) > most) return fail("its pads are too large");
    result.first[axis] = (*pads)[i];
    result.second[axis] = (*pads)[listed + i];
  }
  return result;
}

// Negative pads cut: they become a slice before the padding.
Result<Lowering> pad(const Node& node) {
  SIBYL_TRY(auto pads, read_pads(node));
  auto& [begin, end] = pads;
  Slice cut;
  Shape kept = node.shape(0), y = node.shape(0);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::int64_t first = std::max<std::int64_t>(0, -begin[i]), last = y[i] - std::max<std::int64_t>(0, -end[i]);
    begin[i] = std::max<std::int64_t>(begin[i], 0);
    end[i] = std::max<std::int64_t>(end[i], 0);
    if (last < first || y[i] > (std::int64_t{1} << 61)) return fail("its pads do not fit " + to_string(node.shape(0)));
    if (first != 0 || last != y[i]) {
      cut.axes.push_back(static_cast<std::int64_t>(i));
      cut.starts.push_back(first);
      cut.ends.push_back(last);
      cut.steps.push_back(1);
    }
    kept[i] = last - first;
    y[i] = kept[i] + begin[i] + end[i];
  }
  Steps steps(node);
  Operand x = steps.input(0);
  if (!cut.axes.empty()) x = steps.add(cut, {x}, kept);
  if (y != kept) x = steps.add(Pad{begin, end}, {x}, y);
  return std::move(steps).result(x);
}

// Extents by scales, or as listed. A listed extent that repeats the baked-in batch follows the batch.
Result<Shape> resized_shape(const Node& node, std::size_t scales_at, std::size_t sizes_at) {
  const Shape& x = node.shape(0);
  Shape y = x;
  std::vector<std::size_t> axes;
  if (const auto listed = node.integers("axes")) {
    for (const std::int64_t axis : *listed) {
      SIBYL_TRY(const std::size_t front, node.front_axis(axis));
      axes.push_back(front);
    }
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) axes.push_back(i);
  }
  if (sizes_at != 0 && node.has(sizes_at) && node.shape(sizes_at) != Shape{0}) {
    const auto sizes = node.ints(sizes_at);
    if (!sizes) return fail("its sizes are computed while the model runs");
    if (sizes->size() != axes.size()) return fail("its sizes do not match the rank of " + to_string(x));
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (node.batch_axis(0) != axes[i] || (*sizes)[i] != node.fact_at(0, 0).shape[axes[i]]) y[axes[i]] = (*sizes)[i];
    return y;
  }
  Values scales;
  const AttributeData* attribute = node.attribute("scales");
  if (attribute != nullptr && std::holds_alternative<std::vector<double>>(attribute->value)) {
    scales = std::get<std::vector<double>>(attribute->value);
  } else if (node.has(scales_at) && node.fact(scales_at).values) {
    scales = *node.fact(scales_at).values;
  } else {
    return fail("its scales are computed while the model runs or absent");
  }
  if (scales.size() != axes.size()) return fail("its scales do not match the rank of " + to_string(x));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!(scales[i] > 0 && scales[i] < 1e9)) return fail(fmt::format("a scale is {}", scales[i]));
    if (scales[i] == 1.0) continue;
    // Scales are floats, and are multiplied as such: 10 pixels by 0.7 are 7, though 0.7f is a little less.
    const float extent = static_cast<float>(x[axes[i]]) * static_cast<float>(scales[i]);
    y[axes[i]] = to_integer(std::floor(static_cast<double>(extent)));
  }
  return y;
}

Result<Lowering> resize(const Node& node) {
  const bool upsample = node.op_type() == "Upsample", roi = !upsample && node.opset() >= 11;
  SIBYL_TRY(Shape y, resized_shape(node, roi ? 2 : 1, roi ? 3 : 0));
  const std::string mode = node.text("mode", "nearest");
  const ResizeKind kind = mode == "cubic"            ? ResizeKind::cubic
                          : mode.ends_with("linear") ? ResizeKind::linear
                                                     : ResizeKind::nearest;
  if (y == node.shape(0)) return same_as(0, node);
  return single(node, Resize{kind}, {0}, std::move(y), node.dtype(0));
}

}  // namespace

std::span<const Operator> resampling_operators() {
  static constexpr Operator table[] = {{"Pad", pad}, {"Resize", resize}, {"Upsample", resize}};
  return table;
}

}  // namespace sibyl::onnx_import

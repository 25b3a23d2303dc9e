// Operators that take parts of tensors or put tensors together.
#include <fmt/format.h>

#include <algorithm>

#include "models/onnx/evaluate.h"
#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

// What a Slice keeps of one axis.
struct Range {
  std::int64_t start = 0, end = 0, step = 1, count = 0;
};

// `end` exclusive; for a negative step it may be -1, before the first element.
Range clamp_range(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t extent) {
  const auto from_front = [&](std::int64_t at) {
    return at < 0 ? (at < -extent ? std::int64_t{-1} : at + extent) : at;
  };
  Range range{from_front(start), from_front(end), step, 0};
  if (step > 0) {
    range.start = std::clamp<std::int64_t>(range.start, 0, extent);
    range.end = std::clamp<std::int64_t>(range.end, range.start, extent);
    range.count = (range.end - range.start) / step + ((range.end - range.start) % step != 0 ? 1 : 0);
  } else {
    range.start = std::clamp<std::int64_t>(range.start, -1, extent - 1);
    range.end = std::clamp<std::int64_t>(end < -extent ? -1 : range.end, -1, range.start);
    const std::int64_t stride = step == INT64_MIN ? INT64_MAX : -step;
    range.count = (range.start - range.end) / stride + ((range.start - range.end) % stride != 0 ? 1 : 0);
  }
  return range;
}

Lowering sliced(const Node& node, const std::vector<std::size_t>& axes, const std::vector<Range>& ranges) {
  Shape shape = node.shape(0);
  Slice attributes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Range& range = ranges[i];
    const bool all = range.start == 0 && range.step == 1 && range.count == shape[axes[i]];
    shape[axes[i]] = range.count;
    if (all) continue;
    attributes.axes.push_back(static_cast<std::int64_t>(axes[i]));
    attributes.starts.push_back(range.start);
    attributes.ends.push_back(range.end);
    attributes.steps.push_back(range.step);
  }
  if (attributes.axes.empty()) return same_as(0, node);
  Lowering lowering = single(node, attributes, {0}, shape, node.dtype(0));
  lowering.outputs[0].values = rearranged(node.fact(0), shape, [&](Index index) {
    for (std::size_t i = 0; i < axes.size(); ++i) index[axes[i]] = ranges[i].start + index[axes[i]] * ranges[i].step;
    return index;
  });
  return lowering;
}

Result<Lowering> slice(const Node& node) {
  SIBYL_TRY(const auto starts, node.listed("starts", 1));
  SIBYL_TRY(const auto ends, node.listed("ends", 2));
  SIBYL_TRY(const auto axes, node.listed("axes", 3));
  SIBYL_TRY(const auto steps, node.listed("steps", 4));
  if (!starts || !ends || starts->size() != ends->size() || (axes && axes->size() != starts->size()) ||
      (steps && steps->size() != starts->size()))
    return fail("its starts, ends, axes and steps do not match");
  std::vector<std::size_t> fronts;
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    SIBYL_TRY(const std::size_t axis, node.front_axis(axes ? (*axes)[i] : static_cast<std::int64_t>(i)));
    if (std::find(fronts.begin(), fronts.end(), axis) != fronts.end()) return fail("its axes repeat");
    const std::int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0) return fail("a step is 0");
    fronts.push_back(axis);
    ranges.push_back(clamp_range((*starts)[i], (*ends)[i], step, node.shape(0)[axis]));
  }
  return sliced(node, fronts, ranges);
}

// x[..., i, ...] with a constant i is a view; a table's rows by ids are an embedding; the rest copies.
Result<Lowering> gather(const Node& node) {
  SIBYL_TRY(const std::size_t axis, node.front_axis(node.integer("axis", 0)));
  const Shape &x = node.shape(0), &indices = node.shape(1);
  Shape y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  y.insert(y.end(), indices.begin(), indices.end());
  y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  auto wanted = node.ints(1);
  if (wanted)
    for (std::int64_t& i : *wanted) {
      if (i < -x[axis] || i >= x[axis])
        return fail(
            fmt::format("index {} is outside axis {} of {}", i, axis, to_string(x)), {},
            node.is_weight(0) && axis == 0
                ? fmt::format("its table has {} rows: of positions, the longest sequence (--dim) it takes", x[0])
                : "");
      if (i < 0) i += x[axis];
    }
  if (node.is_weight(0) && axis == 0 && x.size() == 2 && !indices.empty())
    return single(node, Embedding{}, {0, 1}, y, node.dtype(0));
  KnownValues values;
  if (wanted && is_small(y))
    values = rearranged(node.fact(0), y, [&](const Index& index) {
      Index source(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(axis));
      const auto first = index.begin() + static_cast<std::ptrdiff_t>(axis);
      const Index at(first, first + static_cast<std::ptrdiff_t>(indices.size()));
      source.push_back((*wanted)[static_cast<std::size_t>(offset_of(at, indices))]);
      source.insert(source.end(), first + static_cast<std::ptrdiff_t>(indices.size()), index.end());
      return source;
    });
  if (wanted && indices.empty()) {
    Steps steps(node);
    Shape one = x;
    one[axis] = 1;
    const std::int64_t i = wanted->front();
    Operand part = steps.input(0);
    if (x[axis] != 1) part = steps.add(Slice{{static_cast<std::int64_t>(axis)}, {i}, {i + 1}, {1}}, {part}, one);
    Lowering lowering = std::move(steps).result(steps.reshape(part, y));
    lowering.outputs[0].values = values;
    return lowering;
  }
  Lowering lowering = single(node, Gather{static_cast<std::int64_t>(axis)}, {0, 1}, y, node.dtype(0));
  lowering.outputs[0].values = values;
  return lowering;
}

// Where an operand was made for a baked-in batch of 1 (a class token), it is expanded to the batch of the others.
struct Parts {
  std::vector<Shape> shapes;
  std::vector<bool> expanded;  // the same on both sides
};

Parts parts_of(const Node& node, std::size_t axis) {
  std::optional<std::size_t> growing;
  for (std::size_t i = 0; i < node.input_count(); ++i)
    if (const auto found = node.batch_axis(i); found && *found != axis && node.fact_at(i, 0).shape[*found] == 1)
      growing = i;
  Parts parts;
  const std::size_t batch = growing ? node.batch_axis(*growing).value_or(0) : 0;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    parts.shapes.push_back(node.shape(i));
    const bool fixed = node.fact_at(i, 0).shape == node.fact_at(i, 1).shape;
    const bool expand = growing && fixed && batch < parts.shapes[i].size() && parts.shapes[i][batch] == 1;
    if (expand) parts.shapes[i][batch] = node.shape(*growing)[batch];
    parts.expanded.push_back(expand);
  }
  return parts;
}

Result<Lowering> concat(const Node& node) {
  for (std::size_t i = 0; i < node.input_count(); ++i)
    if (!node.has(i)) return fail("an operand is missing");
  SIBYL_TRY(const std::size_t axis, node.front_axis(node.integer("axis", 0)));
  const auto [shapes, expanded] = parts_of(node, axis);
  Shape y = shapes[0];
  y[axis] = 0;
  bool known = true;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    Shape rest = shapes[i];
    if (rest.size() != y.size())
      return fail("its operands differ in rank: " + to_string(shapes[0]) + " and " + to_string(rest));
    rest[axis] = y[axis];
    if (rest != y)
      return fail("its operands do not fit together: " + to_string(shapes[0]) + " and " + to_string(shapes[i]));
    if (shapes[i][axis] > (std::int64_t{1} << 62) - y[axis]) return fail("its result is too large");
    y[axis] += shapes[i][axis];
    known = known && node.fact(i).values && shapes[i] == node.shape(i);
  }
  Steps steps(node);
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    operands.push_back(expanded[i] ? steps.add(Expand{}, {steps.input(i)}, shapes[i]) : steps.input(i));
  if (operands.size() == 1) return same_as(0, node);
  Lowering lowering = std::move(steps).result(steps.add(Concat{static_cast<std::int64_t>(axis)}, operands, y));
  if (known && is_small(y)) {
    auto values = std::make_shared<Values>(static_cast<std::size_t>(element_count(y)));
    std::int64_t first = 0;
    for (std::size_t i = 0; i < shapes.size(); first += shapes[i][axis], ++i) {
      std::size_t next = 0;
      for_each_index(shapes[i], [&](Index index) {
        index[axis] += first;
        (*values)[static_cast<std::size_t>(offset_of(index, y))] = (*node.fact(i).values)[next++];
      });
    }
    lowering.outputs[0].values = std::move(values);
  }
  return lowering;
}

Result<Lowering> split(const Node& node) {
  SIBYL_TRY(const std::size_t axis, node.front_axis(node.integer("axis", 0)));
  SIBYL_TRY(auto sizes, node.listed("split", 1));
  const std::int64_t extent = node.shape(0)[axis];
  const auto parts = static_cast<std::int64_t>(node.output_count());
  if (!sizes || sizes->empty()) {
    const std::int64_t each = (extent + parts - 1) / parts;
    sizes.emplace();
    for (std::int64_t i = 0, left = extent; i < parts; left -= each, ++i)
      sizes->push_back(std::clamp<std::int64_t>(left, 0, each));
  }
  std::int64_t sum = 0;
  for (const std::int64_t size : *sizes) {
    if (size < 0 || size > extent) return fail(fmt::format("a part of {} of an extent of {}", size, extent));
    sum += size;
    if (sum > extent) break;
  }
  if (sum != extent || sizes->size() != node.output_count())
    return fail(fmt::format("its {} parts do not make up an extent of {}", sizes->size(), extent));
  if (sizes->size() == 1) return same_as(0, node);
  Steps steps(node);
  Lowering lowering = std::move(steps).split(steps.input(0), axis, *sizes);
  std::int64_t first = 0;
  for (Fact& part : lowering.outputs) {
    part.values = rearranged(node.fact(0), part.shape, [&](Index index) {
      index[axis] += first;
      return index;
    });
    first += part.shape[axis];
  }
  return lowering;
}

}  // namespace

std::span<const Operator> indexing_operators() {
  static constexpr Operator table[] = {
      {"Slice", slice},
      {"Gather", gather, 2},
      {"Concat", concat},
      {"Split", split},
  };
  return table;
}

}  // namespace sibyl::onnx_import

// Operators that only look at their operand in another way, and those made of such: reshapes, transposes, expansions.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/onnx/evaluate.h"
#include "models/onnx/operators/families.h"
#include "models/onnx/operators/reshape_target.h"

namespace sibyl::onnx_import {
namespace {

Lowering reshaped(const Node& node, Shape shape) {
  const bool same = shape == node.shape(0);
  if (same && node.fact_at(0, 0).shape == node.fact_at(0, 1).shape) return same_as(0, node);
  Lowering lowering = single(node, Reshape{}, {0}, std::move(shape), node.dtype(0));
  lowering.outputs[0].values = node.fact(0).values;
  return lowering;
}

Result<Lowering> reshape(const Node& node) {
  SIBYL_TRY(auto target, node.listed("shape", 1));
  if (!target) return fail("it has no target shape");
  const bool allow_zero = node.integer("allowzero", 0) != 0;
  const bool constant = !node.has(1) || node.ints_at(1, 0) == node.ints_at(1, 1);
  SIBYL_TRY(Shape shape, constant ? reshape_constant_target(node, *target, allow_zero)
                                  : resolve_target(node.shape(0), *target, allow_zero));
  return reshaped(node, std::move(shape));
}

Result<Lowering> flatten(const Node& node) {
  const std::int64_t axis = node.integer("axis", 1), rank = node.rank(0);
  if (axis < -rank || axis > rank) return fail(fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  const auto cut = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  const std::span<const std::int64_t> extents = node.shape(0);
  return reshaped(node, {product(extents.first(cut)), product(extents.subspan(cut))});
}

Result<Lowering> squeeze(const Node& node) {
  SIBYL_TRY(const auto axes, node.listed("axes", 1));
  std::set<std::size_t> dropped;
  if (axes)
    for (const std::int64_t axis : *axes) {
      SIBYL_TRY(const std::size_t front, node.front_axis(axis));
      if (node.shape(0)[front] != 1)
        return fail(fmt::format("axis {} of {} is not 1 and cannot be squeezed", axis, to_string(node.shape(0))));
      dropped.insert(front);
    }
  Shape shape;
  for (std::size_t i = 0; i < node.shape(0).size(); ++i)
    // Without axes every extent of 1 goes, but not a batch that happens to be 1.
    if (axes ? !dropped.contains(i) : node.shape(0)[i] != 1 || node.batch_axis(0) == i)
      shape.push_back(node.shape(0)[i]);
  return reshaped(node, std::move(shape));
}

Result<Lowering> unsqueeze(const Node& node) {
  SIBYL_TRY(const auto axes, node.listed("axes", 1));
  if (!axes) return fail("it has no axes");
  if (axes->size() > 32) return fail("it has too many axes");
  const std::int64_t rank = node.rank(0) + static_cast<std::int64_t>(axes->size());
  std::set<std::size_t> added;
  for (const std::int64_t axis : *axes) {
    SIBYL_TRY(const std::size_t front, front_axis(axis, rank));
    if (!added.insert(front).second) return fail("its axes repeat");
  }
  Shape shape;
  for (std::size_t i = 0, from = 0; i < static_cast<std::size_t>(rank); ++i)
    shape.push_back(added.contains(i) ? 1 : node.shape(0)[from++]);
  return reshaped(node, std::move(shape));
}

Result<Lowering> identity(const Node& node) { return same_as(0, node); }

// A dropout that is in the file trains, whichever mode the export was in.
Result<Lowering> dropout(const Node& node) {
  double ratio = node.number("ratio", 0.5);
  if (node.has(1)) {
    const auto given = node.scalar(1);
    if (!given) return unsupported("its ratio is not a constant");
    ratio = *given;
  }
  if (!(ratio >= 0.0 && ratio < 1.0)) return fail(fmt::format("its ratio is {}", ratio));
  Lowering lowering = ratio == 0.0 ? same_as(0, node) : single(node, Dropout{ratio}, {0}, node.shape(0), node.dtype(0));
  lowering.outputs.push_back({DType::boolean, node.shape(0), {}});
  return lowering;
}

Result<Lowering> transpose(const Node& node) {
  const std::size_t rank = node.shape(0).size();
  Ints permutation = node.integers("perm").value_or(Ints{});
  if (permutation.empty())
    for (std::size_t i = rank; i > 0; --i) permutation.push_back(static_cast<std::int64_t>(i - 1));
  Ints sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool valid = sorted.size() == rank;
  for (std::size_t i = 0; valid && i < rank; ++i) valid = sorted[i] == static_cast<std::int64_t>(i);
  if (!valid) return fail("perm is not a permutation of the axes of " + to_string(node.shape(0)));
  Shape shape;
  for (const std::int64_t from : permutation) shape.push_back(node.shape(0)[static_cast<std::size_t>(from)]);
  if (permutation == sorted) return same_as(0, node);
  Lowering lowering = single(node, Transpose{permutation}, {0}, shape, node.dtype(0));
  lowering.outputs[0].values = rearranged(node.fact(0), shape, [&](const Index& index) {
    Index source(rank);
    for (std::size_t i = 0; i < rank; ++i) source[static_cast<std::size_t>(permutation[i])] = index[i];
    return source;
  });
  return lowering;
}

Index clamp_to(const Index& index, const Shape& shape) {
  Index source(shape.size());
  const std::size_t skip = index.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) source[i] = shape[i] == 1 ? 0 : index[skip + i];
  return source;
}

// A target that is a constant may hold a baked-in batch: on the operand's batch axis, where it repeats its extent; or
// at axis 0 of something that does not grow (a class token), where it may be the batch or not.
void unbake(const Node& node, Ints& target) {
  if (node.side() == 0 || target.empty() || node.ints_at(1, 0) != node.ints_at(1, 1)) return;
  const Shape& x = node.fact_at(0, 0).shape;
  const auto [reference, other] = node.batches();
  if (const auto axis = node.batch_axis(0)) {
    if (target.size() < x.size()) return;
    const std::size_t place = target.size() - x.size() + *axis;
    if (target[place] == x[*axis]) target[place] = node.shape(0)[*axis];
    return;
  }
  const bool candidate = target[0] == reference && (x.size() < target.size() || x[0] == 1);
  if (candidate && node.choices().pick(fmt::format("{} expands to [{}]", to_string(x), to_string(target)), 2) == 1)
    target[0] = other;
}

Result<Lowering> expand(const Node& node) {
  auto target = node.ints(1);
  if (!target) return unsupported("its target shape is computed while the model runs");
  for (std::int64_t& extent : *target)
    if (extent == -1) extent = 1;
  unbake(node, *target);
  if (!is_sane(*target)) return fail("its target shape [" + to_string(*target) + "] is not one");
  SIBYL_TRY(const Shape shape, broadcast(node.shape(0), *target));
  Lowering lowering = single(node, Expand{}, {0}, shape, node.dtype(0));
  lowering.outputs[0].values =
      rearranged(node.fact(0), shape, [&](const Index& index) { return clamp_to(index, node.shape(0)); });
  return lowering;
}

// Each dimension repeated: [a, b] -> [1, a, 1, b] -> [r, a, s, b] -> [r a, s b]. Once is repeated, too, where the other
// side repeats it: as often as there are samples.
Result<Lowering> tile(const Node& node) {
  const auto repeats = node.ints(1), others = node.ints_at(1, 1 - node.side());
  if (!repeats || !others) return unsupported("its repeats are computed while the model runs");
  const Shape& x = node.shape(0);
  if (repeats->size() != x.size()) return fail("its repeats do not match the rank of " + to_string(x));
  Shape apart, repeated, y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t times = (*repeats)[i];
    if (times < 0 || (x[i] > 0 && times > (std::int64_t{1} << 62) / x[i]))
      return fail(fmt::format("it repeats axis {} {} times", i, times));
    if (times != 1 || (i < others->size() && (*others)[i] != 1)) apart.push_back(1), repeated.push_back(times);
    apart.push_back(x[i]), repeated.push_back(x[i]);
    y.push_back(x[i] * times);
  }
  if (!is_sane(y)) return fail("its result is too large");
  if (apart == x) return same_as(0, node);
  Steps steps(node);
  const Operand expanded = steps.add(Expand{}, {steps.reshape(steps.input(0), apart)}, repeated);
  Lowering lowering = std::move(steps).result(steps.reshape(expanded, y));
  lowering.outputs[0].values = rearranged(node.fact(0), y, [&](Index index) {
    for (std::size_t i = 0; i < x.size(); ++i) index[i] %= x[i];
    return index;
  });
  return lowering;
}

// blocksize x blocksize pixels to or from channels. DCR and CRD order differ in the permutation only.
Result<Lowering> depth_to_space(const Node& node) {
  const std::int64_t block = node.integer("blocksize", 0);
  const bool to_space = node.op_type() == "DepthToSpace";
  const Shape& x = node.shape(0);
  if (x.size() != 4 || block < 1 || block > (1 << 20)) return fail("it needs a rank of 4 and a positive blocksize");
  const std::int64_t n = x[0], c = x[1], h = x[2], w = x[3];
  Steps steps(node);
  if (to_space) {
    if (c % (block * block) != 0) return fail("blocksize does not divide the channels");
    const std::int64_t k = c / (block * block);
    const bool columns_first = node.text("mode", "DCR") == "CRD";
    Operand y = columns_first ? steps.reshape(steps.input(0), {n, k, block, block, h, w})
                              : steps.reshape(steps.input(0), {n, block, block, k, h, w});
    y = steps.transpose(y, columns_first ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
    return std::move(steps).result(steps.reshape(y, {n, k, h * block, w * block}));
  }
  if (h % block != 0 || w % block != 0) return fail("blocksize does not divide the image");
  Operand y = steps.reshape(steps.input(0), {n, c, h / block, block, w / block, block});
  y = steps.transpose(y, {0, 3, 5, 1, 2, 4});
  return std::move(steps).result(steps.reshape(y, {n, c * block * block, h / block, w / block}));
}

}  // namespace

std::span<const Operator> view_operators() {
  static constexpr Operator table[] = {
      {"Reshape", reshape},
      {"Flatten", flatten},
      {"Squeeze", squeeze},
      {"Unsqueeze", unsqueeze},
      {"Identity", identity},
      {"Dropout", dropout},
      {"Transpose", transpose},
      {"Expand", expand, 2},
      {"Tile", tile, 2},
      {"DepthToSpace", depth_to_space},
      {"SpaceToDepth", depth_to_space},
  };
  return table;
}

}  // namespace sibyl::onnx_import

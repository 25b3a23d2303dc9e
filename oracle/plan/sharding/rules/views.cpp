// Operations that move elements and compute nothing.
#include <algorithm>
#include <functional>
#include <numeric>

#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {

namespace {

// Dimensions of one shape that hold the same elements as some of another: [begin, end) of either.
struct Group {
  std::size_t from_begin = 0, from_end = 0, to_begin = 0, to_end = 0;
};

// That with the dimension `dim` of `from`. Extents are walked from the front; where both products meet a group ends.
std::optional<Group> group_of(const Shape& from, const Shape& to, std::size_t dim) {
  std::size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    const std::size_t first_i = i, first_j = j;
    std::int64_t a = from[i++], b = to[j++];
    while (a != b) {
      if (a < b && i < from.size())
        a *= from[i++];
      else if (b < a && j < to.size())
        b *= to[j++];
      else
        return std::nullopt;
    }
    if (dim < i) return Group{first_i, i, first_j, j};
  }
  return std::nullopt;
}

std::size_t outermost(const Shape& shape, std::size_t first, std::size_t end) {
  while (first + 1 < end && shape[first] == 1) ++first;
  return first;
}

}  // namespace

// Of a group only the outermost dimension can be split, and becomes the outermost of the other group.
std::optional<std::size_t> reshaped_dim(const Shape& from, const Shape& to, std::size_t dim) {
  const std::optional<Group> group = group_of(from, to, dim);
  if (!group || outermost(from, group->from_begin, group->from_end) != dim) return std::nullopt;
  return outermost(to, group->to_begin, group->to_end);
}

namespace {

// Where a dimension ends up behind others, as tokens of several sequences in one row do: there a rank has its part of
// each of equal pieces.
std::optional<Layout> behind_others(const Shape& from, const Shape& to, const Layout& layout) {
  const std::optional<Group> group = group_of(from, to, layout.dim);
  if (!group) return std::nullopt;
  const std::size_t there = outermost(to, group->to_begin, group->to_end);
  for (std::size_t j = group->to_begin; j < group->to_end; ++j)
    if (j != there && to[j] != 1) return std::nullopt;
  if (std::ranges::adjacent_find(layout.pieces, std::not_equal_to{}) != layout.pieces.end()) return std::nullopt;
  auto pieces = static_cast<std::int64_t>(std::max<std::size_t>(1, layout.pieces.size()));
  for (std::size_t i = group->from_begin; i < layout.dim; ++i) pieces *= from[i];
  return Layout::split(there, Ints(static_cast<std::size_t>(pieces), to[there] / pieces));
}

// Where it takes a rank's part of each of equal pieces that get a dimension of their own: to the outermost of what a
// piece becomes behind it.
std::optional<std::size_t> dim_of_equal_pieces(const Shape& from, const Shape& to, const Layout& layout) {
  const Ints& pieces = layout.pieces;
  if (pieces.empty() || !std::all_of(pieces.begin(), pieces.end(), [&](auto piece) { return piece == pieces[0]; }))
    return std::nullopt;
  Shape apart = from;
  apart[layout.dim] = pieces[0];
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(layout.dim), static_cast<std::int64_t>(pieces.size()));
  return reshaped_dim(apart, to, layout.dim + 1);
}

// Where several of the equal pieces make one place of the dimensions before: as many of each are then pieces of that
// dimension, as of sequences in a row that come apart again.
std::optional<Layout> within_a_dim(const Shape& from, const Shape& to, const Layout& layout) {
  const std::optional<Group> group = group_of(from, to, layout.dim);
  if (!group || layout.pieces.empty() || group->from_end - group->from_begin > 1) return std::nullopt;
  if (std::ranges::adjacent_find(layout.pieces, std::not_equal_to{}) != layout.pieces.end()) return std::nullopt;
  std::int64_t behind = 1;
  for (std::size_t dim = group->to_end; dim-- > group->to_begin;) {
    const std::int64_t piece = layout.pieces[0] / behind;
    if (layout.pieces[0] % behind != 0) return std::nullopt;
    if (piece > 1 && to[dim] % piece == 0) {
      const auto count = static_cast<std::size_t>(to[dim] / piece);
      return Layout::split(dim, count > 1 ? Ints(count, piece) : Ints{});
    }
    behind *= to[dim];
  }
  return std::nullopt;
}

}  // namespace

Variants variants(const Reshape& op, const Operands& o) {
  const Shape& from = o.inputs.at(0);
  const Shape& to = o.outputs.at(0);
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    const std::optional<std::size_t> dim = reshaped_dim(from, to, layout.dim);
    if (dim && (layout.pieces.empty() || from[layout.dim] == to[*dim]))
      return Variant{{{layout, false, {}}}, {Layout::split(*dim, layout.pieces)}, op};
    if (const auto within = dim_of_equal_pieces(from, to, layout))
      return Variant{{{layout, false, {}}}, {Layout::split(*within)}, op};
    if (!o.tokens) return std::nullopt;
    if (const auto behind = behind_others(from, to, layout)) return Variant{{{layout, false, {}}}, {*behind}, op};
    if (const auto apart = within_a_dim(from, to, layout)) return Variant{{{layout, false, {}}}, {*apart}, op};
    return std::nullopt;
  });
}

Variants variants(const Transpose& op, const Operands& o) {
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    const auto at = std::find(op.permutation.begin(), op.permutation.end(), static_cast<std::int64_t>(layout.dim));
    if (at == op.permutation.end()) return std::nullopt;
    return Variant{{{layout, false, {}}},
                   {Layout::split(static_cast<std::size_t>(at - op.permutation.begin()), layout.pieces)},
                   op};
  });
}

// Parts of operands laid end to end are the part of the whole, each operand being a piece of it.
Variants variants(const Concat& op, const Operands& o) {
  const auto axis =
      static_cast<std::size_t>(op.axis < 0 ? op.axis + static_cast<std::int64_t>(o.outputs.at(0).size()) : op.axis);
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    Variant v{{}, {}, op};
    if (layout.dim != axis) {
      v.inputs.assign(o.inputs.size(), {layout, false, {}});
      v.outputs = {layout};
      return v;
    }
    Ints pieces;
    for (std::size_t i = 0; i < o.inputs.size(); ++i) {
      const Layout* arriving = o.split(i);
      const Layout own = arriving && arriving->dim == axis ? *arriving : Layout::split(axis);
      v.inputs.push_back({own, false, {}});
      if (own.pieces.empty()) pieces.push_back(o.inputs[i][axis]);
      pieces.insert(pieces.end(), own.pieces.begin(), own.pieces.end());
    }
    v.outputs = {Layout::split(axis, pieces.size() > 1 ? pieces : Ints{})};
    return v;
  });
}

// Any dimension that is not cut short; or, one being split by pieces, that one where whole pieces are left.
Variants variants(const Slice& op, const Operands& o) {
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    const auto cut = std::find(op.axes.begin(), op.axes.end(), static_cast<std::int64_t>(layout.dim));
    if (cut == op.axes.end()) return Variant{{{layout, false, {}}}, {layout}, op};
    const auto at = static_cast<std::size_t>(cut - op.axes.begin());
    if (op.steps[at] != 1) return std::nullopt;
    Ints own;
    std::int64_t first = 0;
    for (const std::int64_t piece : layout.pieces) {
      const bool left = first >= op.starts[at] && first + piece <= op.ends[at];
      if (left) own.push_back(piece);
      if (!left && first < op.ends[at] && first + piece > op.starts[at]) return std::nullopt;
      first += piece;
    }
    if (own.empty()) return std::nullopt;
    Slice local = op;
    local.starts[at] /= o.ways;
    local.ends[at] /= o.ways;
    return Variant{{{layout, false, {}}}, {Layout::split(layout.dim, own.size() > 1 ? own : Ints{})}, local};
  });
}

// A dimension split by pieces comes apart where its pieces do.
Variants variants(const Split& op, const Operands& o) {
  const auto axis =
      static_cast<std::size_t>(op.axis < 0 ? op.axis + static_cast<std::int64_t>(o.inputs.at(0).size()) : op.axis);
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    Variant v{{{layout, false, {}}}, std::vector<Layout>(o.outputs.size(), layout), op};
    if (layout.dim != axis) return v;
    Split local = op;
    auto piece = layout.pieces.begin();
    for (std::size_t i = 0; i < op.sizes.size(); ++i) {
      Ints own;
      std::int64_t covered = 0;
      while (covered < op.sizes[i] && piece != layout.pieces.end()) covered += own.emplace_back(*piece++);
      if (covered != op.sizes[i]) return std::nullopt;
      v.outputs.at(i) = Layout::split(axis, own.size() > 1 ? own : Ints{});
      local.sizes[i] /= o.ways;
    }
    v.attributes = local;
    return v;
  });
}

// Any dimension of x but the one indexed; or, indices being split, the dimension they become.
Variants variants(const Gather& op, const Operands& o) {
  const Shape& x = o.inputs.at(0);
  const auto axis = static_cast<std::size_t>(op.axis < 0 ? op.axis + static_cast<std::int64_t>(x.size()) : op.axis);
  const std::size_t indexed = o.inputs.at(1).size();
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand == 1)
      return Variant{{shared(), {layout, false, {}}}, {Layout::split(axis + layout.dim, layout.pieces)}, op};
    if (layout.dim == axis) return std::nullopt;
    const std::size_t dim = layout.dim < axis ? layout.dim : layout.dim + indexed - 1;
    return Variant{{{layout, false, {}}, whole()}, {Layout::split(dim, layout.pieces)}, op};
  });
}

Variants variants(const Expand& op, const Operands& o) { return elementwise(op, o); }

}  // namespace sibyl::sharding

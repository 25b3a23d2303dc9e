// How the ranks of one mesh axis hold one tensor between them.
//
// whole: each has all of it. split: each has an equal part of dimension `dim`. partial: each has a summand of it.
// Where the dimension is several extents in a row (`pieces`: a joint q|k|v projection, concatenated channels), every
// one of them is cut and a rank holds its part of each. A partial tensor's `dim` is the one to scatter it along.
//
// Where the extent does not divide it may be rounded up (a vocabulary): the parts are equal, and of them the last ones
// reach `surplus` places beyond the end. What lies there counts for nothing; of a parameter it is zeros and stays so.
//
// A gradient lies as its tensor does, but for that of a partial tensor, which is whole.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "models/operations/operations.h"
#include "models/shape.h"

namespace sibyl {

struct Layout {
  enum class Kind { whole, split, partial } kind = Kind::whole;
  std::size_t dim = 0;
  Ints pieces;  // empty: one piece
  std::int64_t surplus = 0;

  static Layout whole() { return {}; }
  static Layout split(std::size_t dim, Ints pieces = {}) { return {Kind::split, dim, std::move(pieces)}; }
  static Layout rounded_up(std::size_t dim, std::int64_t surplus) { return {Kind::split, dim, {}, surplus}; }
  static Layout partial(std::size_t dim) { return {Kind::partial, dim, {}}; }

  [[nodiscard]] bool is_whole() const { return kind == Kind::whole; }
  [[nodiscard]] bool is_split() const { return kind == Kind::split; }
  [[nodiscard]] bool is_split(std::size_t along) const { return is_split() && dim == along; }
  [[nodiscard]] bool is_partial() const { return kind == Kind::partial; }
  // The same split of a tensor in which the dimension has another number.
  [[nodiscard]] Layout along(std::size_t other) const { return {kind, other, pieces, surplus}; }
  auto operator<=>(const Layout&) const = default;
};

std::string to_string(const Layout& layout);  // "whole", "split 1", "split 2 of 768+768+768", "split 0 less 3", "partial"

// Rows of its neighbours that an operation on a split image needs beside its own; at the image's rim they are `fill`.
struct Halo {
  std::int64_t before = 0, after = 0;
  double fill = 0.0;

  [[nodiscard]] bool empty() const { return before == 0 && after == 0; }
  auto operator<=>(const Halo&) const = default;
};

// What an operation asks of an operand. `partial_gradient`: the operand is whole, but each rank uses it for its own
// share of the work, so that the gradients of all ranks must be summed.
struct Need {
  Layout layout;
  bool partial_gradient = false;
  Halo halo;  // along layout.dim
  // The operand's elements are numbers of things (rows of a table, classes) of which each rank has so many: they are to
  // count from the rank's own first one, and be -1 where another rank has the thing. 0: as they are.
  std::int64_t numbers_of = 0;
  // What lies beyond the dimension's end is to be this.
  std::optional<double> beyond = {};

  // More than a layout: something must be done to the elements.
  [[nodiscard]] bool changes_elements() const { return !halo.empty() || numbers_of > 0 || beyond.has_value(); }
  auto operator<=>(const Need&) const = default;
};

// Can `shape` be split so over `ways` ranks?
bool divides(const Shape& shape, const Layout& layout, std::int64_t ways);
// What one of `ways` ranks holds; divides() must hold. Partial tensors keep their shape.
Shape part_of(Shape shape, const Layout& layout, std::int64_t ways);
// What rounding an extent up to equal parts adds to it.
std::int64_t surplus_of(std::int64_t extent, std::int64_t ways);

}  // namespace sibyl

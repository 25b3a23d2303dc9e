// How the ranks of one mesh axis hold one tensor between them.
//
// whole: each has all of it. split: each has an equal part of dimension `dim`. partial: each has a summand of it.
// Where the dimension is several extents in a row (`pieces`: a joint q|k|v projection, concatenated channels), every
// one of them is cut and a rank holds its part of each. A partial tensor's `dim` is the one to scatter it along.
//
// A gradient lies as its tensor does, but for that of a partial tensor, which is whole.
#pragma once

#include <cstddef>
#include <string>

#include "models/operations/operations.h"
#include "models/shape.h"

namespace sibyl {

struct Layout {
  enum class Kind { whole, split, partial } kind = Kind::whole;
  std::size_t dim = 0;
  Ints pieces;  // empty: one piece

  static Layout whole() { return {}; }
  static Layout split(std::size_t dim, Ints pieces = {}) { return {Kind::split, dim, std::move(pieces)}; }
  static Layout partial(std::size_t dim) { return {Kind::partial, dim, {}}; }

  [[nodiscard]] bool is_whole() const { return kind == Kind::whole; }
  [[nodiscard]] bool is_split() const { return kind == Kind::split; }
  [[nodiscard]] bool is_split(std::size_t along) const { return is_split() && dim == along; }
  [[nodiscard]] bool is_partial() const { return kind == Kind::partial; }
  auto operator<=>(const Layout&) const = default;
};

std::string to_string(const Layout& layout);  // "whole", "split 1", "split 2 of 768+768+768", "partial"

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

  auto operator<=>(const Need&) const = default;
};

// Can `shape` be split so over `ways` ranks?
bool divides(const Shape& shape, const Layout& layout, std::int64_t ways);
// What one of `ways` ranks holds; divides() must hold. Partial tensors keep their shape.
Shape part_of(Shape shape, const Layout& layout, std::int64_t ways);

}  // namespace sibyl

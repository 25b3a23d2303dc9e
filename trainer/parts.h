// Parts of tensors: what the ranks of an axis hold where a dimension is split between them, in one piece or in several
// (Layout). Copies, so that parts lie contiguously.
#pragma once

#include <torch/types.h>
#include <cstddef>

#include "oracle/plan/sharding/layout.h"

namespace sibyl::trainer {

// A dimension of a whole tensor that `ways` ranks share.
struct Division {
  std::size_t dim = 0;
  Ints pieces;  // as Layout's
  int ways = 1;
  std::int64_t surplus = 0;  // as Layout's: what lies beyond the end is zeros

  [[nodiscard]] Shape part_shape(Shape whole) const;
};

// Part `index` of the whole.
at::Tensor part_of(const at::Tensor& whole, const Division& division, int index);
// Between the whole and its parts, which lie in `parts` one after the other: [ways, part…].
void take_apart(const at::Tensor& whole, const Division& division, at::Tensor& parts);
void put_together(const at::Tensor& parts, const Division& division, at::Tensor& whole);

// Of part `index`, that much of the dimension lies before the whole's end.
std::int64_t within(std::int64_t part_extent, const Division& division, int index);

}  // namespace sibyl::trainer

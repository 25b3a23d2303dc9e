#include "trainer/parts.h"

#include <algorithm>

namespace sibyl::trainer {
namespace {

// Calls visit(begin in the whole, begin in the part, length) for each piece of part `index`.
void each_piece(const Division& division, std::int64_t extent, int index, auto&& visit) {
  std::int64_t whole_begin = 0, part_begin = 0;
  for (const std::int64_t piece : division.pieces.empty() ? Ints{extent} : division.pieces) {
    const std::int64_t length = (piece + division.surplus) / division.ways;
    visit(std::min(whole_begin + index * length, extent), part_begin, within(length, division, index));
    whole_begin += piece;
    part_begin += length;
  }
}

void copy_part(const at::Tensor& whole, const Division& division, int index, const at::Tensor& part, bool into_part) {
  const auto dim = static_cast<std::int64_t>(division.dim);
  each_piece(division, whole.size(dim), index, [&](std::int64_t in_whole, std::int64_t in_part, std::int64_t length) {
    const at::Tensor a = whole.narrow(dim, in_whole, length), b = part.narrow(dim, in_part, length);
    if (into_part)
      b.copy_(a);
    else
      a.copy_(b);
  });
}

// Copies go over all of it but for what lies beyond the end.
void clear_surplus(const Division& division, at::Tensor& parts) {
  if (division.surplus > 0) parts.zero_();
}

}  // namespace

std::int64_t within(std::int64_t part_extent, const Division& division, int index) {
  const std::int64_t end = part_extent * division.ways - division.surplus;
  return std::clamp<std::int64_t>(end - index * part_extent, 0, part_extent);
}

Shape Division::part_shape(Shape whole) const {
  whole[dim] = (whole[dim] + surplus) / ways;
  return whole;
}

at::Tensor part_of(const at::Tensor& whole, const Division& division, int index) {
  at::Tensor part = at::empty(division.part_shape(whole.sizes().vec()), whole.options().requires_grad(false));
  clear_surplus(division, part);
  copy_part(whole, division, index, part, true);
  return part;
}

void take_apart(const at::Tensor& whole, const Division& division, at::Tensor& parts) {
  clear_surplus(division, parts);
  for (int i = 0; i < division.ways; ++i) copy_part(whole, division, i, parts[i], true);
}

void put_together(const at::Tensor& parts, const Division& division, at::Tensor& whole) {
  for (int i = 0; i < division.ways; ++i) copy_part(whole, division, i, parts[i], false);
}

}  // namespace sibyl::trainer

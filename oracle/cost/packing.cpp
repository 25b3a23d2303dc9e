#include "oracle/cost/packing.h"

#include <functional>
#include <numeric>
#include <utility>

namespace sibyl {
namespace {

Signature copy_of(const LocalTensor& tensor) { return {Copy{}, {tensor.shape}, {tensor.shape}, tensor.dtype}; }

// What lies before and behind the dimension counts, not how it is divided: [before, extent, behind].
Shape around(const Shape& shape, std::size_t dim) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(dim);
  const auto product = [](auto begin, auto end) {
    return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
  };
  return {product(shape.begin(), at), *at, product(at + 1, shape.end())};
}

// The part that a rank has of its own, and the whole, which may reach beyond the end (Transfer::surplus).
Signature apart(const Transfer& transfer, const LocalTensor& whole, const LocalTensor& part) {
  const std::int64_t own = part.shape[transfer.dim];
  const std::int64_t ways = (whole.shape[transfer.dim] + transfer.surplus) / own;
  const Shape small = around(part.shape, transfer.dim), large = {small[0], own * ways, small[2]};
  Packing packing{.ways = ways, .apart = 1};
  packing.apart_pieces = transfer.pieces;
  return {std::move(packing), {large}, {small}, part.dtype};
}

Signature together(const Transfer& transfer, const LocalTensor& part, const LocalTensor& whole) {
  Signature signature = apart(transfer, whole, part);
  auto& packing = std::get<Packing>(signature.attributes);
  std::swap(packing.apart, packing.together);
  std::swap(packing.apart_pieces, packing.together_pieces);
  std::swap(signature.inputs, signature.outputs);
  return signature;
}

Signature swapped(const Transfer& transfer, const LocalTensor& in, const LocalTensor& out) {
  Packing packing{.ways = in.shape[transfer.to] / out.shape[transfer.to],
                  .apart = static_cast<std::int64_t>(transfer.to),
                  .together = static_cast<std::int64_t>(transfer.dim)};
  packing.apart_pieces = transfer.to_pieces;
  packing.together_pieces = transfer.pieces;
  return {std::move(packing), {in.shape}, {out.shape}, in.dtype};
}

Signature halo(const Transfer& transfer, const LocalTensor& in, const LocalTensor& out) {
  HaloPacking packing{.before = transfer.halo.before, .after = transfer.halo.after};
  packing.sums = transfer.motion == Motion::halo_sum;
  packing.middle = transfer.ranks > 2;
  return {packing, {around(in.shape, transfer.dim)}, {around(out.shape, transfer.dim)}, out.dtype};
}

}  // namespace

std::optional<Signature> packing_of(const Transfer& transfer, const LocalTensor& in, const LocalTensor& out,
                                    Backend backend) {
  if (in_place(transfer)) return std::nullopt;
  const bool here = backend == Backend::cpu;
  switch (transfer.motion) {
    case Motion::all_gather:
      if (in_a_row(transfer, in.shape)) return here ? std::optional(copy_of(in)) : std::nullopt;
      return here ? together(transfer, in, out) : copy_of(out);
    case Motion::reduce_scatter:
      if (in_a_row(transfer, in.shape)) return here ? std::optional(copy_of(out)) : std::nullopt;
      return here ? apart(transfer, in, out) : copy_of(in);
    case Motion::all_to_all: return here ? swapped(transfer, in, out) : copy_of(in);
    case Motion::halo:
    case Motion::halo_sum: return here ? halo(transfer, in, out) : copy_of(out);
    default: return copy_of(out);
  }
}

}  // namespace sibyl

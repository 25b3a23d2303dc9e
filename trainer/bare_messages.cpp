#include "trainer/bare_messages.h"

#include <algorithm>

#include "trainer/parts.h"

namespace sibyl::trainer {
namespace {

constexpr std::size_t rotated = 64'000'000 / sizeof(float);
constexpr std::size_t line = 16;  // floats: buffers begin with a cache line

std::size_t floats_for(std::size_t bytes) { return (bytes / sizeof(float) + line) / line * line; }

}  // namespace

void BareMessages::make_room(std::size_t bytes) {
  const std::size_t floats = floats_for(bytes);
  if (at_ + floats <= memory_.size()) return;
  at_ = 0;
  if (memory_.size() < std::max(floats, rotated)) memory_.resize(std::max(floats, rotated));
}

std::span<std::byte> BareMessages::next(std::size_t bytes) {
  const std::span<std::byte> part = std::as_writable_bytes(std::span(memory_).subspan(at_)).first(bytes);
  at_ += floats_for(bytes);
  return part;
}

// Rows to the neighbours, and from them; a halo's go where a halo sum's come from.
void BareMessages::swap(const Transfer& transfer, std::size_t row, Communicator& ranks) {
  const bool sums = transfer.motion == Motion::halo_sum;
  const std::size_t before = row * static_cast<std::size_t>(transfer.halo.before),
                    after = row * static_cast<std::size_t>(transfer.halo.after);
  make_room(2 * (before + after) + 4 * line * sizeof(float));
  std::vector<Communicator::Swap> swaps;
  const auto add = [&](int peer, std::size_t out, std::size_t in) {
    if (peer < 0 || peer >= ranks.size() || out + in == 0) return;
    const std::span<const std::byte> sent = next(out);
    swaps.push_back({peer, sent, next(in)});
  };
  add(ranks.rank() - 1, sums ? before : after, sums ? after : before);
  add(ranks.rank() + 1, sums ? after : before, sums ? before : after);
  ranks.swap(swaps);
}

void BareMessages::send(const Transfer& transfer, const Shape& shape, std::size_t width, Communicator& ranks) {
  const auto ways = static_cast<std::size_t>(ranks.size());
  const auto bytes = [width](const Shape& of) { return static_cast<std::size_t>(element_count(of)) * width; };
  const auto room = [this](std::size_t size) {
    make_room(size);
    return next(size);
  };
  // Zeros are zeros in every type of that width.
  const auto summands = [&](std::size_t size) {
    return Elements{room(size), width == width_of(Element::bf16) ? Element::bf16 : Element::f32};
  };
  switch (transfer.motion) {
    case Motion::all_gather: ranks.all_gather(room(bytes(shape) * ways), width); break;
    case Motion::all_reduce: ranks.all_reduce(summands(bytes(shape)), Algorithm::automatic); break;
    case Motion::maximum: ranks.all_reduce(summands(bytes(shape)), Algorithm::automatic, Reduction::maximum); break;
    case Motion::reduce_scatter: {
      const Division division{transfer.dim, transfer.pieces, ranks.size(), transfer.surplus};
      ranks.reduce_scatter(summands(bytes(division.part_shape(shape)) * ways), Algorithm::automatic);
      break;
    }
    case Motion::all_to_all: {
      const Division leaving{transfer.to, transfer.to_pieces, ranks.size()};
      const std::size_t all = bytes(leaving.part_shape(shape)) * ways;
      make_room(2 * all + 2 * line * sizeof(float));
      const std::span<const std::byte> out = next(all);
      ranks.all_to_all(out, next(all));
      break;
    }
    case Motion::halo:
    case Motion::halo_sum: swap(transfer, bytes(shape) / static_cast<std::size_t>(shape[transfer.dim]), ranks); break;
    case Motion::pass_round: ranks.all_gather(room(bytes(shape) * ways), width); break;
    case Motion::sum_round: ranks.all_gather(room(2 * bytes(shape) * ways), width); break;
    case Motion::none:
    case Motion::slice:
    case Motion::own_numbers:
    case Motion::fill: break;  // no message
  }
}

}  // namespace sibyl::trainer

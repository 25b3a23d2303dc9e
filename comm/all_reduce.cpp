#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/collectives.h"
#include "netmodel/collective/partition.h"

namespace sibyl::comm {
namespace {

using collective::Fold;
using collective::Halving;
using collective::Range;

std::span<float> of(std::span<float> data, Range range) {
  return data.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
}

std::span<float> part_of(std::span<float> data, int parts, int index) {
  return of(data, collective::part(static_cast<std::int64_t>(data.size()), parts, index));
}

// Sends `out` and reduces what comes into `own`; they must not overlap, for `out` is in flight meanwhile.
void exchange_reduce(const Group& group, std::span<const float> out, int to, std::span<float> own, int from) {
  group.messages.exchange(std::as_bytes(out), to, own.size_bytes(), from,
                          [&](std::size_t offset, std::span<const std::byte> chunk) {
                            group.reduce(own.subspan(offset / sizeof(float), chunk.size() / sizeof(float)), chunk);
                          });
}

// Even ranks below 2 * extra hand their vector to the odd one above them; false for those that now wait.
bool fold_in(const Group& group, const Fold& fold, std::span<float> data) {
  if (fold.waits(group.rank)) {
    group.messages.send(std::as_bytes(data), group.rank + 1);
    return false;
  }
  if (fold.takes(group.rank)) exchange_reduce(group, {}, group.rank - 1, data, group.rank - 1);
  return true;
}

void fold_out(const Group& group, const Fold& fold, std::span<float> data) {
  if (fold.waits(group.rank)) group.messages.receive(std::as_writable_bytes(data), group.rank + 1);
  if (fold.takes(group.rank)) group.messages.send(std::as_bytes(data), group.rank - 1);
}

}  // namespace

void add(std::span<float> target, std::span<const std::byte> source) {
  // Scratch buffers come from operator new, aligned for any float; chunks begin at multiples of chunk_bytes.
  const auto* values = reinterpret_cast<const float*>(source.data());
  for (std::size_t i = 0; i < target.size(); ++i) target[i] += values[i];
}

void keep_greater(std::span<float> target, std::span<const std::byte> source) {
  const auto* values = reinterpret_cast<const float*>(source.data());
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = std::max(target[i], values[i]);
}

void ring_reduce_scatter(const Group& group, std::span<float> data) {
  const int p = group.size, next = (group.rank + 1) % p, before = (group.rank + p - 1) % p;
  for (int round = 0; round < p - 1; ++round)
    exchange_reduce(group, part_of(data, p, (group.rank + 2 * p - 1 - round) % p), next,
                 part_of(data, p, (group.rank + 2 * p - 2 - round) % p), before);
}

void ring_all_gather(const Group& group, std::span<std::byte> data, std::size_t width) {
  const int p = group.size, next = (group.rank + 1) % p, before = (group.rank + p - 1) % p;
  const auto part = [&](int index) {
    const Range range = collective::part(static_cast<std::int64_t>(data.size() / width), p, index);
    return data.subspan(static_cast<std::size_t>(range.begin) * width, static_cast<std::size_t>(range.size()) * width);
  };
  for (int round = 0; round < p - 1; ++round)
    group.messages.exchange(part((group.rank + p - round) % p), next, part((group.rank + p - 1 - round) % p), before);
}

void recursive_doubling_all_reduce(const Group& group, std::span<float> data) {
  const Fold fold = Fold::of(group.size);
  if (fold_in(group, fold, data)) {
    const int number = fold.inner(group.rank);
    std::vector<float> outgoing(fold.core > 1 ? data.size() : 0);
    for (int distance = 1; distance < fold.core; distance *= 2) {
      const int partner = fold.outer(number ^ distance);
      if (!data.empty()) std::memcpy(outgoing.data(), data.data(), data.size_bytes());
      exchange_reduce(group, outgoing, partner, data, partner);
    }
  }
  fold_out(group, fold, data);
}

void rabenseifner_all_reduce(const Group& group, std::span<float> data) {
  const Fold fold = Fold::of(group.size);
  const auto elements = static_cast<std::int64_t>(data.size());
  if (fold_in(group, fold, data)) {
    const int number = fold.inner(group.rank);
    const auto values = [&](Range parts) { return of(data, collective::elements_of(parts, elements, fold.core)); };
    std::vector<Range> given;
    Halving halving(fold.core);
    int step = 0;
    for (; (1 << step) < fold.core; ++step) {
      const int partner = fold.outer(number ^ (1 << step));
      given.push_back(halving.given(number, step));
      halving.parts = halving.kept(number, step);
      exchange_reduce(group, values(given.back()), partner, values(halving.parts), partner);
    }
    while (step-- > 0) {
      const int partner = fold.outer(number ^ (1 << step));
      const Range back = given[static_cast<std::size_t>(step)];
      group.messages.exchange(std::as_bytes(values(halving.parts)), partner, std::as_writable_bytes(values(back)),
                              partner);
      halving.parts = {std::min(halving.parts.begin, back.begin), std::max(halving.parts.end, back.end)};
    }
  }
  fold_out(group, fold, data);
}

}  // namespace sibyl::comm

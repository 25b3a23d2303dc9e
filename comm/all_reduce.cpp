#include <algorithm>
#include <vector>

#include "comm/collectives.h"
#include "netmodel/collective/partition.h"

namespace sibyl::comm {
namespace {

using collective::Fold;
using collective::Halving;
using collective::Range;

Elements of(const Elements& data, Range range) {
  return data.part(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
}

Elements part_of(const Elements& data, int parts, int index) {
  return of(data, collective::part(static_cast<std::int64_t>(data.size()), parts, index));
}

// Sends `out` and reduces what comes into `own`; they must not overlap, for `out` is in flight meanwhile.
void exchange_reduce(const Group& group, std::span<const std::byte> out, int to, const Elements& own, int from) {
  const Reduce reduce = reduce_of(own.type, group.reduction);
  group.messages.exchange(out, to, own.bytes.size(), from, [&](std::size_t offset, std::span<const std::byte> chunk) {
    reduce(own.bytes.subspan(offset, chunk.size()), chunk);
  });
}

// Even ranks below 2 * extra hand their vector to the odd one above them; false for those that now wait.
bool fold_in(const Group& group, const Fold& fold, const Elements& data) {
  if (fold.waits(group.rank)) {
    group.messages.send(data.bytes, group.rank + 1);
    return false;
  }
  if (fold.takes(group.rank)) exchange_reduce(group, {}, group.rank - 1, data, group.rank - 1);
  return true;
}

void fold_out(const Group& group, const Fold& fold, const Elements& data) {
  if (fold.waits(group.rank)) group.messages.receive(data.bytes, group.rank + 1);
  if (fold.takes(group.rank)) group.messages.send(data.bytes, group.rank - 1);
}

}  // namespace

void ring_reduce_scatter(const Group& group, const Elements& data) {
  const int p = group.size, next = (group.rank + 1) % p, before = (group.rank + p - 1) % p;
  for (int round = 0; round < p - 1; ++round)
    exchange_reduce(group, part_of(data, p, (group.rank + 2 * p - 1 - round) % p).bytes, next,
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

void recursive_doubling_all_reduce(const Group& group, const Elements& data) {
  const Fold fold = Fold::of(group.size);
  if (fold_in(group, fold, data)) {
    const int number = fold.inner(group.rank);
    std::vector<std::byte> outgoing(fold.core > 1 ? data.bytes.size() : 0);
    for (int distance = 1; distance < fold.core; distance *= 2) {
      const int partner = fold.outer(number ^ distance);
      std::ranges::copy(data.bytes, outgoing.begin());
      exchange_reduce(group, outgoing, partner, data, partner);
    }
  }
  fold_out(group, fold, data);
}

void rabenseifner_all_reduce(const Group& group, const Elements& data) {
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
      exchange_reduce(group, values(given.back()).bytes, partner, values(halving.parts), partner);
    }
    while (step-- > 0) {
      const int partner = fold.outer(number ^ (1 << step));
      const Range back = given[static_cast<std::size_t>(step)];
      group.messages.exchange(values(halving.parts).bytes, partner, values(back).bytes, partner);
      halving.parts = {std::min(halving.parts.begin, back.begin), std::max(halving.parts.end, back.end)};
    }
  }
  fold_out(group, fold, data);
}

}  // namespace sibyl::comm

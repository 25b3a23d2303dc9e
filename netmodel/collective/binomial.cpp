// Binomial trees, the whole vector in one message: in round i of a broadcast ranks below 2^i send to those 2^i above them,
// of a reduction the same backwards; an all-reduce is a reduction and a broadcast. ceil(log2 p) (a + m b) each way.
#include <bit>

#include "netmodel/collective/algorithms.h"

namespace sibyl::collective {
namespace {

int doublings(int count) { return std::bit_width(static_cast<unsigned>(count - 1)); }

}  // namespace

Ranged binomial_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  Ranged time;
  if (ranks > 1) time += doublings(ranks) * wire.inside(job.bytes, groups);
  // The root sends in each round, or is sent to.
  if (nodes > 1)
    time += wire.bucket(groups, nodes, to_the_top)
                .rounds(wire.across(job.bytes, groups, nodes, to_the_top), job.bytes, doublings(nodes));
  return time * (job.collective == Collective::all_reduce ? 2 : 1);
}

std::int64_t binomial_elements(Collective collective, std::int64_t elements, int size, int rank) {
  std::int64_t messages = 0;
  if (collective != Collective::reduce)
    for (int distance = 1; distance < size; distance *= 2)
      if (rank < distance && rank + distance < size) ++messages;
  if (collective != Collective::broadcast && rank > 0) ++messages;
  return messages * elements;
}

}  // namespace sibyl::collective

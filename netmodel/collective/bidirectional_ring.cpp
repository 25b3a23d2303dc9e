// A ring both ways at once: of each part one half goes round one way, the other half the other way. Where neighbours
// are joined by links of their own (a torus, devices of a node), a ring leaves the way back of each idle, and this
// takes half as long for the bytes (fabric/schedule). Behind a switch each rank has one port, which in a ring sends and
// receives all the time as well: there it sends two messages of half the length at once, and gains nothing.
#include <algorithm>

#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"

namespace sibyl::collective {

double bidirectional_ring_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups] = job.placement;
  const int size = job.placement.size(), crossings = nodes > 1 ? nodes : 0;
  const double message = job.bytes / size;
  double latency = 0.0, stream = 0.0;
  if (ranks > 1) {
    const double empty = wire.inside(0, ranks * groups);
    latency += empty * (size - crossings) / size;
    stream = wire.inside(message, ranks * groups) - empty;
  }
  if (nodes > 1) {
    const int stripes = wire.stripes(ranks), flows = 2 * stripes * groups;
    const double empty = wire.across(0, flows, nodes, false);
    latency += empty * crossings / size;
    stream = std::max(stream, wire.across(message / 2 / stripes, flows, nodes, false) - empty);
  }
  const int rounds = (size - 1) * (job.collective == Collective::all_reduce ? 2 : 1);
  return rounds * (latency + stream);
}

// As ring_elements, of the first halves; of the second ones with the ranks in reverse.
std::int64_t bidirectional_ring_elements(Collective collective, std::int64_t elements, int size, int rank) {
  const auto half = [&](int of, int which) {
    return part(part(elements, size, (of + size) % size).size(), 2, which).size();
  };
  const std::int64_t scatter = elements - half(rank, 0) - half(rank, 1);
  const std::int64_t gather = elements - half(rank + 1, 0) - half(rank - 1, 1);
  if (collective == Collective::reduce_scatter) return scatter;
  if (collective == Collective::all_gather) return gather;
  return scatter + gather;
}

}  // namespace sibyl::collective

// Ring: p - 1 rounds, in each of which every rank sends one part of m/p to the next; an all-reduce is a
// reduce-scatter and an all-gather, 2 (p - 1) rounds.
//
// Every link works in every round, so the slowest sets the pace of bytes; but latencies add up along the way of one
// part, which crosses each link of the ring in turn. So a round costs the mean latency of the links and the largest
// byte time. A ring in rank order crosses each node's NICs once per direction; with several NICs the library lays as
// many rings as NICs (Wire::stripes), each with its share of the bytes: of the node with the fewest ranks.
#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"

namespace sibyl::collective {

Ranged ring_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  const int size = job.placement.size();
  const Ranged message = job.bytes / size;
  const int crossings = nodes > 1 ? nodes : 0;
  Ranged latency, stream;
  if (ranks > 1) {
    const Ranged empty = wire.inside(0, ranks * groups);
    latency += empty * (size - crossings) / size;
    stream = wire.inside(message, ranks * groups) - empty;
  }
  const int stripes = wire.stripes(job.placement.fewest_on_a_node());
  if (nodes > 1) {
    const Ranged empty = wire.across(0, stripes * groups, nodes, to_neighbours);
    latency += empty * crossings / size;
    stream = max(stream, wire.across(message / stripes, stripes * groups, nodes, to_neighbours) - empty);
  }
  const int rounds = (size - 1) * (job.collective == Collective::all_reduce ? 2 : 1);
  if (nodes == 1) return rounds * (latency + stream);
  return wire.bucket(stripes * groups, nodes, to_neighbours).rounds(latency + stream, message / stripes, rounds);
}

// Round s of the reduce-scatter sends part rank - 1 - s, so all parts but the rank's own; round s of the all-gather
// sends part rank - s, so all but the next rank's own.
std::int64_t ring_elements(Collective collective, std::int64_t elements, int size, int rank) {
  const std::int64_t scatter = elements - part(elements, size, rank).size();
  const std::int64_t gather = elements - part(elements, size, (rank + 1) % size).size();
  if (collective == Collective::reduce_scatter) return scatter;
  if (collective == Collective::all_gather) return gather;
  return scatter + gather;
}

}  // namespace sibyl::collective

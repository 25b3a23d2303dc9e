// Bruck's algorithms: ceil(log2 p) rounds for any p, the k-th between ranks at distance 2^k round a circle.
//
// All-gather: what a rank holds doubles; it sends all of it, in the last round only what is lacking: p - 1 parts of m/p
// in all, as a ring. All-to-all: part i of a rank (of p, for the rank i further on) travels the distances whose bits i
// has, so each round moves about half of the buffer, (m/2) log2 p in all where pairs send m (p - 1)/p: few long
// messages in place of many short ones. Uneven parts are padded to the longest.
//
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems" (1997); padding: Fan, Gilray, Pascucci, Huang, Micinski, Kumar, "Optimizing the Bruck
// algorithm for non-uniform all-to-all communication" (HPDC 2022), padded Bruck.
#include <algorithm>

#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"
#include "netmodel/collective/rounds.h"

namespace sibyl::collective {

Ranged bruck_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  const int size = job.placement.size();
  Rounds rounds(wire);
  for (int distance = 1; distance < size; distance *= 2) {
    const Ranged bytes = job.imbalance.busiest * job.bytes / size * bruck_parts(job.collective, size, distance);
    // Of a node's ranks, in a row, those within that distance of its end have their partners on another node, but for
    // those whose way round the circle ends in the node again.
    const int leave = nodes > 1 ? std::min(distance, ranks) + std::min(size - distance, ranks) - ranks : 0;
    if (leave == 0)
      rounds.inside(bytes, ranks * groups);
    else
      rounds.beside(leave < ranks ? wire.inside(bytes, (ranks - leave) * groups) : 0.0, bytes, leave * groups, nodes,
                    distance > ranks ? shifted_by((distance + ranks - 1) / ranks) : to_neighbours);
  }
  return rounds.seconds();
}

// All-gather: to the rank before by `distance`, the first parts of those it has, its own and the next ranks'.
// All-to-all: what this rank sends at distance d has the bits below d of its way behind it: it set out so much before,
// and goes to rank + the rest, j, an odd multiple of d. There are d such ways for each j, as far as ways go.
std::int64_t bruck_elements(Collective collective, std::int64_t elements, int size, int rank) {
  const auto of = [&](int ahead) { return part(elements, size, (rank + ahead) % size).size(); };
  std::int64_t sent = 0;
  for (int distance = 1; distance < size; distance *= 2) {
    if (collective == Collective::all_gather)
      for (int i = 0; i < bruck_parts(collective, size, distance); ++i) sent += of(i);
    else
      for (int j = distance; j < size; j += 2 * distance) sent += std::min(distance, size - j) * of(j);
  }
  return sent;
}

}  // namespace sibyl::collective

// All-to-all pair by pair: in round s each rank sends m/p to the rank s further on and takes as much from the rank s before;
// p - 1 rounds, one after the other. Of a node's g ranks min(s, p - s, g) have their partner on another node.
#include <algorithm>

#include "netmodel/collective/algorithms.h"

namespace sibyl::collective {

double pair_by_pair_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups] = job.placement;
  const int size = job.placement.size();
  const double message = job.bytes / size;
  if (nodes == 1) return (size - 1) * wire.inside(message, ranks * groups);
  double total = 0.0;
  // s and p - s alike.
  for (int leave = 1; leave < ranks; ++leave)
    total += 2 * std::max(wire.inside(message, (ranks - leave) * groups),
                          wire.across(message, leave * groups, nodes, false));
  return total + (size - 2 * ranks + 1) * wire.across(message, ranks * groups, nodes, true);
}

}  // namespace sibyl::collective

// All-to-all pair by pair: in round s each rank sends m/p to the rank s further on and takes as much from the rank s
// before; p - 1 rounds, one after the other. Of a node's g ranks min(s, p - s, g) have their partner on another node.
// Of an uneven one each round lasts until the busiest rank has its part.
#include <algorithm>

#include "netmodel/collective/algorithms.h"

namespace sibyl::collective {

double pair_by_pair_seconds(const Job& job, const Wire& wire) {
  const int ranks = job.placement.ranks_per_node, nodes = job.placement.nodes, groups = job.placement.groups_per_node;
  const int size = job.placement.size();
  const double message = job.bytes / size, inside = message * job.imbalance.busiest;
  if (nodes == 1) return (size - 1) * wire.inside(inside, ranks * groups);
  const auto across = [&](int leave, bool far) {
    const double bytes = message * job.imbalance.among(wire.on_one_nic(leave), size);
    return wire.across(bytes, leave * groups, nodes, far);
  };
  double total = 0.0;
  // s and p - s alike.
  for (int leave = 1; leave < ranks; ++leave)
    total += 2 * std::max(wire.inside(inside, (ranks - leave) * groups), across(leave, false));
  return total + (size - 2 * ranks + 1) * across(ranks, true);
}

}  // namespace sibyl::collective

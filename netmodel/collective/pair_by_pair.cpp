// All-to-all pair by pair: in round s each rank sends m/p to the rank s further on and takes as much from the rank s
// before; p - 1 rounds, one after the other. Of a node's g ranks min(s, p - s, g) have their partner on another node,
// and never more than there are ranks elsewhere. Of an uneven one each round lasts until the busiest rank has its part.
#include <algorithm>

#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/rounds.h"

namespace sibyl::collective {

Ranged pair_by_pair_seconds(const Job& job, const Wire& wire) {
  const int ranks = job.placement.ranks_per_node, nodes = job.placement.nodes, groups = job.placement.groups_per_node;
  const int size = job.placement.size();
  const Ranged message = job.bytes / size, inside = message * job.imbalance.busiest;
  if (nodes == 1) return (size - 1) * wire.inside(inside, ranks * groups);
  const auto busiest = [&](int leave) { return message * job.imbalance.among(wire.on_one_nic(leave), size); };
  Rounds few(wire);
  const auto some_leave = [&](int leave) {
    few.beside(wire.inside(inside, (ranks - leave) * groups), busiest(leave), leave * groups, nodes, to_neighbours);
  };
  const int most = std::min(ranks, size - ranks), in_the_middle = size - 2 * most + 1;
  for (int leave = 1; leave < most; ++leave) some_leave(leave);
  for (int leave = most - 1; leave > 0; --leave) some_leave(leave);
  if (most < ranks) {
    for (int round = 0; round < in_the_middle; ++round) some_leave(most);
    return few.seconds();
  }
  const int stripes = wire.stripes(1), flows = stripes * ranks * groups;
  const Ranged part = busiest(ranks) / stripes, all = wire.across(part, flows, nodes, to_everyone);
  return few.seconds() + wire.bucket(flows, nodes, to_everyone).rounds(all, part, in_the_middle);
}

}  // namespace sibyl::collective

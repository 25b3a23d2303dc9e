// All-to-all: part m/p to each other rank, all posted at once. Of a rank's partners g - 1 are in its node; to the
// others all ranks of the node send at once. Both ways are busy together, so the slower one counts. Of an uneven one
// what arrives at the busiest rank counts: at its link, at its NIC, and at its leaf, which it shares with ranks that
// get less.
//
// Halos: ranks in a line, each with its neighbours: all m to the only one, m/2 to each of two. A node sends what its
// first and its last rank have for others, to one node or to two.
#include "netmodel/collective/algorithms.h"

namespace sibyl::collective {

namespace {

Ranged halo_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  const Ranged inside = ranks > 1 ? wire.inside(job.bytes, ranks * groups) : 0.0;
  if (nodes == 1) return inside;
  const Ranged each = job.placement.size() > 2 ? job.bytes / 2 : job.bytes;
  const int neighbours = nodes > 2 ? 2 : 1;
  return max(inside, wire.across(each, neighbours * groups, nodes, to_neighbours));
}

}  // namespace

Ranged pairwise_seconds(const Job& job, const Wire& wire) {
  const int ranks = job.placement.ranks_per_node, nodes = job.placement.nodes, groups = job.placement.groups_per_node;
  if (job.collective == Collective::send_receive) return halo_seconds(job, wire);
  const int size = job.placement.size();
  const Ranged message = job.bytes / size;
  Ranged latency, stream;
  if (ranks > 1) {
    latency = wire.inside(0, ranks * groups);
    stream = (ranks - 1) * (wire.inside(message * job.imbalance.busiest, ranks * groups) - latency);
  }
  if (nodes > 1) {
    const int stripes = wire.stripes(1), flows = stripes * ranks * groups;
    const Ranged empty = wire.across(0, flows, nodes, to_everyone);
    latency = max(latency, empty);
    // One by one, or where a token bucket lets the first bytes pass at once, what all of them together take.
    const auto over = [&](int sharing, Reach reach) {
      const Ranged bytes = message * job.imbalance.among(sharing, size);
      const auto beyond = [&](const Ranged& each) { return wire.across(each / stripes, flows, nodes, reach) - empty; };
      const Ranged apart = (size - ranks) * beyond(bytes);
      if (wire.bucket(flows, nodes, reach).held <= 0) return apart;
      return max(apart, beyond((size - ranks) * bytes));
    };
    const int of_leaf = job.imbalance.even() ? size : ranks * wire.extents(nodes).front();
    stream = max(stream, over(of_leaf, to_everyone));
    if (!job.imbalance.even()) stream = max(stream, over(wire.on_one_nic(ranks), to_neighbours));
  }
  return latency + stream;
}

}  // namespace sibyl::collective

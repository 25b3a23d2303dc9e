// Switches add: what ranks send is summed on its way up, and the sum copied on its way down.
//
// Inside a node (NVLink SHARP) the switch sums one part for each rank out of all ranks' memories, and each rank has its
// sum stored to all of them at once: over each link, one way, go all g parts that others sum and the one that is
// stored, m (1 + 1/g), in two latencies, where a ring moves 2 m (g - 1)/g in 2 (g - 1). Between nodes (SHARP) each of a
// node's ranks sends its m/g up the tree of switches once and gets the sum back: one message from end to end, whatever
// the nodes, and no more above a switch than below one of its ports. Where only one of the two adds, a ring does it in
// the node, or a tree between nodes (as NCCL's NVLSTree); where neither does, all of it is a ring. Chunks stream
// through both: latencies add up, bytes go at the pace of the slower.
//
// A link gives less so than in a ring: NCCL counts on 0.85 of it on Hopper and 0.74 on Blackwell (`nvlsEfficiency`).
//
// Sources: Klenk et al., "An in-network architecture for accelerating shared-memory multiprocessor collectives" (2020);
// Graham et al., "Scalable hierarchical aggregation protocol (SHArP)" (2016); NCCL 2.30, src/graph/tuning.cc.
#include "netmodel/collective/algorithms.h"

namespace sibyl::collective {
namespace {

constexpr double share_of_a_rings_rate = 0.80;

struct Pipelined {
  Ranged latency, stream;
};

Pipelined inside_a_node(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  if (ranks == 1) return {};
  if (wire.reduces_inside()) {
    const Ranged empty = wire.inside(0.0, ranks * groups);
    const Ranged bytes = job.bytes * (1.0 + 1.0 / ranks) / share_of_a_rings_rate;
    return {2 * empty, wire.inside(bytes, ranks * groups) - empty};
  }
  const Ranged empty = ring_seconds({job.collective, 0.0, {ranks, 1, groups}}, wire);
  return {empty, ring_seconds({job.collective, job.bytes, {ranks, 1, groups}}, wire) - empty};
}

}  // namespace

Job share_between_nodes(const Job& job) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  return {job.collective, job.bytes / ranks, {1, nodes, ranks * groups}};
}

Ranged in_network_seconds(const Job& job, const Wire& wire, const BetweenNodes& by_ranks) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  const Pipelined inside = inside_a_node(job, wire);
  if (nodes == 1) return inside.latency + inside.stream;
  BetweenNodes between = by_ranks;
  if (wire.reduces_across()) {
    const int stripes = wire.stripes(1), flows = stripes * ranks * groups;
    between = {wire.across(0.0, flows, nodes, to_neighbours),
               wire.across(job.bytes / ranks / stripes, flows, nodes, to_neighbours)};
  }
  return inside.latency + max(between.empty + inside.stream, between.share);
}

Ranged in_network_seconds(const Job& job, const Wire& wire) {
  if (!wire.reduces_inside() && !wire.reduces_across()) return ring_seconds(job, wire);
  if (job.placement.nodes == 1) return in_network_seconds(job, wire, {});
  Job share = share_between_nodes(job);
  const Ranged whole = tree_seconds(share, wire);
  share.bytes = 0.0;
  return in_network_seconds(job, wire, {tree_seconds(share, wire), whole});
}

}  // namespace sibyl::collective

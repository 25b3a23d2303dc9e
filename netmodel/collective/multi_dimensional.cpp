// One dimension of the machine after the other: a ring reduce-scatter along each, then all-gathers back. After
// dimensions of d1, d2, … ranks each rank holds m/(d1 d2 …), so the far and narrow dimensions move least: 2 m (di -
// 1)/(d1 … di) in the i-th, 2 m (p - 1)/p in all, as a ring. Two dimensions, node and nodes, are `hierarchical` with
// rings; IBM's DDL calls three, X x Y x Z, devices of a host, hosts of a rack, and racks; on a torus of nodes its own
// dimensions follow that of the node. All lines of a dimension are busy at once; dimensions are not. Nodes that lack
// ranks are taken to have them.
//
// Steps: 2 sum of (di - 1) instead of a ring's 2 (p - 1). Sources: Cho et al., "PowerAI DDL" (2017); Cho et al.,
// "BlueConnect: decomposing all-reduce for deep learning on heterogeneous network hierarchy" (2019).
#include "netmodel/collective/algorithms.h"

namespace sibyl::collective {

Ranged multi_dimensional_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  Ranged total;
  if (ranks > 1) total += ring_seconds({job.collective, job.bytes, {ranks, 1, groups}}, wire);
  if (nodes == 1) return total;
  const int ways = job.collective == Collective::all_reduce ? 2 : 1;
  const int stripes = wire.stripes(1), flows = stripes * ranks * groups;
  Ranged bytes = job.bytes / ranks;
  int reached = 1;
  for (const int extent : wire.extents(nodes)) {
    const Reach reach = reached > 1 ? to_the_top : to_neighbours;
    reached *= extent;
    bytes = bytes / extent;
    const Ranged message = bytes / stripes;
    total += wire.bucket(flows, reached, reach)
                 .rounds(wire.across(message, flows, reached, reach), message, ways * (extent - 1));
  }
  return total;
}

}  // namespace sibyl::collective

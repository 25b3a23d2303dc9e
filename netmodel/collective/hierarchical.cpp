// Hierarchical: a ring reduce-scatter inside each node, then every local rank runs its m/g through the nodes, all g at
// once over the NICs, then a ring all-gather inside the node. Latency 2 (g - 1) inside and the faster of a ring
// and Rabenseifner between nodes; bytes through a node's NICs 2 m (n - 1)/n.
//
// Of an all-to-all: in the node each rank gives each other one, in one message of m/g, what goes to that one's place on
// any node; then the ranks of one place exchange what their nodes have for each other, m/n each. So n - 1 messages
// leave a rank's node where pairs send g (n - 1), of g times the length; the bytes between nodes are the same. Of an
// uneven one the busiest rank's place has what goes to that place on all nodes; between them its NIC is shared as
// before.
//
// Nodes that lack ranks are taken to have them: places that they do not have would be another rank's work.
#include "netmodel/collective/algorithms.h"

namespace sibyl::collective {

Ranged hierarchical_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  const GroupPlacement local{ranks, 1, groups};
  const GroupPlacement between{1, nodes, ranks * groups};
  Ranged total;
  if (job.collective == Collective::all_to_all) {
    const int size = job.placement.size();
    const Imbalance of_place{job.imbalance.among(nodes, size)},
        of_nic{job.imbalance.among(wire.on_one_nic(ranks), size)};
    if (ranks > 1) total += pairwise_seconds({job.collective, job.bytes, local, of_place}, wire);
    if (nodes > 1) total += pairwise_seconds({job.collective, job.bytes, between, of_nic}, wire);
    return total;
  }
  if (ranks > 1) total += ring_seconds({job.collective, job.bytes, local}, wire);
  if (nodes > 1) {
    const Job share{job.collective, job.bytes / ranks, between};
    total += job.collective == Collective::all_reduce
                 ? min(ring_seconds(share, wire), rabenseifner_seconds(share, wire))
                 : ring_seconds(share, wire);
  }
  return total;
}

}  // namespace sibyl::collective

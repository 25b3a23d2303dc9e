// The root sends all of it to everybody (broadcast), or everybody to the root (reduce), all at once: one latency, and p
// - 1 times the bytes through the root's port; (p - g) m b through its node's NIC, (g - 1) m b' in the node.
#include "netmodel/collective/algorithms.h"

namespace sibyl::collective {

Ranged linear_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  Ranged latency, stream;
  if (ranks > 1) {
    latency = wire.inside(0, groups);
    stream = (ranks - 1) * (wire.inside(job.bytes, groups) - latency);
  }
  if (nodes > 1) {
    const Ranged empty = wire.across(0, groups, nodes, to_everyone);
    latency = max(latency, empty);
    stream = max(stream, (job.placement.size() - ranks) * (wire.across(job.bytes, groups, nodes, to_everyone) - empty));
  }
  return latency + stream;
}

std::int64_t linear_elements(Collective collective, std::int64_t elements, int size, int rank) {
  if (collective == Collective::broadcast) return rank == 0 ? (size - 1) * elements : 0;
  return rank == 0 ? 0 : elements;
}

}  // namespace sibyl::collective

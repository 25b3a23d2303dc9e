// All-to-all: part m/p to each other rank, all posted at once, and a single message. Of a rank's partners g - 1 are
// in its node; to the others all ranks of the node send at once. Both ways are busy together, so the slower one
// counts.
#include <algorithm>

#include "netmodel/collective/algorithms.h"

namespace sibyl::collective {

double pairwise_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups] = job.placement;
  if (job.collective == Collective::send_receive)
    return nodes > 1 ? wire.across(job.bytes, groups, nodes, false) : wire.inside(job.bytes, groups);
  const int size = job.placement.size();
  const double message = job.bytes / size;
  double latency = 0.0, stream = 0.0;
  if (ranks > 1) {
    latency = wire.inside(0, ranks * groups);
    stream = (ranks - 1) * (wire.inside(message, ranks * groups) - latency);
  }
  if (nodes > 1) {
    const double empty = wire.across(0, ranks * groups, nodes, true);
    latency = std::max(latency, empty);
    stream = std::max(stream, (size - ranks) * (wire.across(message, ranks * groups, nodes, true) - empty));
  }
  return latency + stream;
}

}  // namespace sibyl::collective

// All-to-all as p - 1 exchanges, one with each other rank (part m/p each), and a single message. Of a rank's partners g - 1 are in its
// node; to the others all ranks of the node send at once.
#include "netmodel/collective/algorithms.h"

namespace sibyl::collective {

double pairwise_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups] = job.placement;
  if (job.collective == Collective::send_receive)
    return nodes > 1 ? wire.across(job.bytes, groups, nodes, false) : wire.inside(job.bytes, groups);
  const int size = job.placement.size();
  const double message = job.bytes / size;
  double total = 0.0;
  if (ranks > 1) total += (ranks - 1) * wire.inside(message, ranks * groups);
  if (nodes > 1) total += (size - ranks) * wire.across(message, ranks * groups, nodes, true);
  return total;
}

}  // namespace sibyl::collective

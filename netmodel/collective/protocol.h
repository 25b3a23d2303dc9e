// NCCL's protocols: how a rank learns that bytes have come, and what that costs.
//
// LL stores 4 bytes of flag beside each 4 of data, so half of a link's rate is data (in trees NCCL counts on 1/3.8),
// and nobody waits for a fence: the shortest hops. LL128 stores 8 of flag beside each 120, where stores of 128 bytes
// arrive whole (NVLink): 15/16 of the rate. Simple sends chunks and raises a flag behind a fence: all of the rate, the
// longest hops. What switches add goes by Simple.
//
// What is known of a link is the latency of short messages, which go by LL; the others' hops are counted beyond it.
// Shares and latencies are those by which NCCL itself chooses (NCCL 2.30, src/graph/tuning.cc: baseLatencies,
// hwLatencies, ncclTopoTuneModel), without its bounds for a generation's LL and its corrections for sizes.
#pragma once

#include <span>

#include "netmodel/network.h"
#include "netmodel/topology.h"

namespace sibyl::collective {

struct ProtocolCost {
  double share = 1.0;                 // of a link's rate that is data
  double launch = 0.0;                // seconds beyond LL's, once
  double inside = 0.0, across = 0.0;  // seconds beyond LL's for each hop in a node, between nodes
};

// Those that NCCL may take on such links; none where NCCL has no such algorithm, or takes what a message's length says.
std::span<const Protocol> protocols_of(Collective collective, Algorithm algorithm, LinkKind link);

ProtocolCost cost_of(Protocol protocol, Collective collective, Algorithm algorithm, LinkKind link,
                     const GroupPlacement& placement);

}  // namespace sibyl::collective

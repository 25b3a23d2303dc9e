// Max-min fair rates: no flow can have more but at the cost of one that has no more than it.
//
// Progressive filling (Bertsekas, Gallager, Data Networks, 1992, 6.5.2): all rates rise together; where a channel is
// full, the flows over it stay at what they have. A flow of which only a share crosses a channel takes that share of
// its rate there.
#pragma once

#include <span>
#include <vector>

#include "netmodel/fabric/contention/flow_set.h"

namespace sibyl::fabric {

// Bytes/s of each flow; 0 for those that are not active; infinite for one that crosses nothing.
std::vector<double> fair_rates(const FlowSet& flows, const std::vector<bool>& active);
std::vector<double> fair_rates(const FlowSet& flows);

}  // namespace sibyl::fabric

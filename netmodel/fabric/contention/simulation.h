// Flows over time: whenever one begins or ends, rates are shared anew (sharing.h). A flow's bytes begin to move when
// its latency after its start has passed.
#pragma once

#include <span>
#include <vector>

#include "netmodel/fabric/contention/flow_set.h"
#include "netmodel/fabric/schedule.h"

namespace sibyl::fabric {

// When each flow's last byte arrives, in seconds from 0.
std::vector<double> finish_times(const FlowSet& set, std::span<const Flow> flows);

// A collective step by step: a round begins when the one before has ended everywhere; alike rounds are simulated once.
double simulated_seconds(const Fabric& fabric, std::span<const double> capacities, const Schedule& schedule,
                         double bytes);

// Several collectives at once, from a common start; gives when each ends. Alike rounds of one are one long round here.
struct Running {
  const Schedule* schedule = nullptr;
  double bytes = 0.0;
};
std::vector<double> simulated_together(const Fabric& fabric, std::span<const double> capacities,
                                       std::span<const Running> collectives);

}  // namespace sibyl::fabric

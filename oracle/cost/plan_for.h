// The plan of a strategy on one cluster: what is left open (where a pipeline is cut) is decided by what it costs there.
#pragma once

#include "base/result.h"
#include "calibration/cluster.h"
#include "oracle/plan/plan.h"

namespace sibyl {

Result<Plan> plan_for(const Graph& graph, const Strategy& strategy, const Cluster& cluster);

}  // namespace sibyl

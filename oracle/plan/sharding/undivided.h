// Why an axis finds nothing of a program to share: which operation or input stands in its way, how large that is, and
// into how many parts it was to be divided.
#pragma once

#include "base/result.h"
#include "models/graph.h"
#include "oracle/plan/plan.h"
#include "oracle/plan/sharding/policy.h"

namespace sibyl {

// Of code infeasible, at --parallel. `stage`: the program that shard() found nothing in.
Failure undivided(const Graph& graph, const Stage& stage, const Policy& policy, int ways);

}  // namespace sibyl

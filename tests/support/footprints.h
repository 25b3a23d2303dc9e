// What a plan of one stage takes, where every kernel has the same scratch memory.
#pragma once

#include "oracle/cost/price.h"
#include "oracle/memory/footprint.h"
#include "tests/support/clusters.h"

namespace sibyl::test {

inline Footprint footprint_of(const Graph& graph, const Strategy& strategy, Bytes workspace = {}) {
  const Cluster on = cluster(strategy.data, 1);
  const Plan plan = make_plan(graph, strategy).value();
  const Stage& stage = plan.stages.at(0);
  PricedStage priced = price(plan, stage, on);
  for (PricedKernel& kernel : priced.prices) kernel.estimate.workspace = workspace;
  return footprint(stage, priced, strategy, on.kernels.device());
}

}  // namespace sibyl::test

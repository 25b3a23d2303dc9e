// Closed form and simulation of whole plans: random models, clusters and strategies.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "oracle/cost/price.h"
#include "oracle/plan/plan.h"
#include "oracle/simulate/pipeline.h"
#include "oracle/simulate/step.h"
#include "tests/support/any_plan.h"

namespace sibyl {
namespace {

using test::any, test::any_cluster, test::any_model, test::any_strategy;

struct Times {
  Seconds simulated, closed;
};

Times times_of(const Plan& plan, const Cluster& cluster, Slowdown slowdown) {
  const std::vector<PricedStage> priced = price(plan, cluster);
  if (plan.stages.size() > 1)
    return {simulate_pipeline(plan, priced, slowdown).step.total, closed_pipeline(plan, priced, slowdown)};
  const Stage& stage = plan.stages.front();
  return {simulate_step(stage, priced.front(), slowdown).total, closed_step(stage, priced.front(), slowdown).total};
}

// Ten strategies for each of a hundred models: those that a model cannot be split by are drawn again.
RC_GTEST_PROP(ClosedForm, IsWithinOnePercentOfTheSimulation, ()) {
  const Graph graph = any_model();
  const Cluster cluster = any_cluster();
  const Slowdown slowdown{1 + 0.01 * any(0, 100), 1 + 0.01 * any(0, 200)};
  int priced = 0;
  for (int drawn = 0; priced < 10 && drawn < 100; ++drawn) {
    const Strategy strategy = any_strategy();
    const auto plan = make_plan(graph, strategy);
    if (!plan) continue;
    ++priced;
    const Times times = times_of(*plan, cluster, slowdown);
    if (std::abs(times.closed / times.simulated - 1) >= 0.01)
      RC_LOG() << graph.name << ", " << parallel_text(strategy) << ", " << schedule_text(strategy) << ", "
               << strategy.accumulation << " micro-batches: simulated " << times.simulated.value() << " s, closed "
               << times.closed.value() << " s\n";
    RC_ASSERT(std::abs(times.closed / times.simulated - 1) < 0.01);
  }
  RC_ASSERT(priced == 10);
}

}  // namespace
}  // namespace sibyl

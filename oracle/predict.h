// The one question: how does this graph train with this strategy on this cluster?
//
// Pure: no clocks, no globals; the same answer for the same arguments on any number of threads. A plan that does not
// fit in memory is still priced (`fits` is false); one that cannot be split so, or needs more devices than there are,
// is an Error of code infeasible. What `cancelled` ends is one of code interrupted.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/cancelled.h"
#include "base/result.h"
#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/cost/kernel_prices.h"
#include "oracle/cost/plan_for.h"
#include "oracle/prediction.h"
#include "oracle/simulate/pipeline.h"
#include "oracle/strategy.h"

namespace sibyl {

Result<Prediction> predict(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                           const Cancelled& cancelled = {});

// A step with what it was worked out from.
struct PlannedStep {
  Prediction prediction;  // times, memory and plan; not what holds it back, nor operations, stages, limits
  Plan plan;
  std::vector<PricedStage> priced;  // parallel to plan.stages
  Slowdown slowdown;
  std::optional<SimulatedPipeline> pipeline;  // where there are several stages
};

// The same for many strategies: what they have in common, programs and what kernels take, is worked out once. The
// answers are the same as predict()'s. For one thread at a time; a thread of its own has one of its own.
class Evaluator {
 public:
  // All must outlive it. Several may share what kernels take.
  Evaluator(const Graph& graph, const Cluster& cluster)
      : graph_(&graph),
        own_(std::make_unique<KernelPrices>(cluster)),
        kernels_(own_.get()),
        planner_(graph, *kernels_) {}
  Evaluator(const Graph& graph, KernelPrices& kernels) : graph_(&graph), kernels_(&kernels), planner_(graph, kernels) {}
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  Result<Evaluation> evaluate(const Strategy& strategy, const Cancelled& cancelled = {});
  // Also what holds the step back, what each operation takes, what limits the plan.
  Result<Prediction> predict(const Strategy& strategy, const Cancelled& cancelled = {});
  // As much of it as a timeline wants.
  Result<PlannedStep> step(const Strategy& strategy, const Cancelled& cancelled = {});

 private:
  const Graph* graph_;
  std::unique_ptr<KernelPrices> own_;
  KernelPrices* kernels_;
  Planner planner_;
};

// One prediction per device count. weak: the batch per device stays; strong: the global batch stays.
enum class Scaling { weak, strong };
struct ScalePoint {
  int devices = 1;
  Result<Prediction> prediction;
  double efficiency = 0;  // throughput per device against the first point's
};
// The strategy of one of its points, and the cluster with room for it: the same nodes, as many as needed; a part of one
// for fewer.
Strategy strategy_at(const Strategy& strategy, int devices, Scaling scaling);
Result<Cluster> sized_for(const Cluster& cluster, int devices);
// `each` is called after every point. `cancelled` ends the work, the last point with an Error of code interrupted.
std::vector<ScalePoint> scale(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                              const std::vector<int>& device_counts, Scaling scaling,
                              const std::function<void(const ScalePoint&)>& each = {}, const Cancelled& cancelled = {});

}  // namespace sibyl

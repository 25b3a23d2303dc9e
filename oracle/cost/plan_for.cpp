#include "oracle/cost/plan_for.h"

#include <algorithm>

#include "oracle/cost/price.h"

namespace sibyl {
namespace {

// Seconds of a step's two passes.
class StepTime {
 public:
  StepTime(const Strategy& strategy, KernelPrices& kernels)
      : mesh_(mesh_of(strategy)), strategy_(strategy), kernels_(kernels), cluster_(kernels.cluster()) {}

  double operator()(const Stage& stage, const Step& step) const {
    if (const auto* exchange = std::get_if<Exchange>(&step)) {
      const PricedExchange priced = price_exchange(mesh_, stage, *exchange, cluster_);
      double time = 0;
      for (const auto& transfer : {priced.forward, priced.backward})
        if (transfer) time += transfer->time.time.value();
      return time;
    }
    const auto& compute = std::get<Compute>(step);
    const Signature s = signature(stage, compute);
    double time = of({s, Pass::forward, 0}) + cluster_.step_overhead_per_operation.value();
    if (compute.gradients != 0) time += of({s, Pass::backward, compute.gradients});
    return time;
  }

 private:
  [[nodiscard]] double of(const KernelKey& key) const {
    return kernels_.of(key, strategy_).estimate.time.time.value() * cluster_.composition.factor;
  }

  Mesh mesh_;
  const Strategy& strategy_;
  KernelPrices& kernels_;
  const Cluster& cluster_;
};

}  // namespace

const Result<Stage>& Planner::program_of(const Strategy& strategy) {
  constexpr std::size_t most = 32;  // a large model's program is some MB
  const auto found = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const Known& known) { return same_program(known.strategy, strategy); });
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
  } else {
    programs_.push_front({strategy, make_program(*graph_, strategy)});
    if (programs_.size() > most) programs_.pop_back();
  }
  return programs_.front().program;
}

Result<Plan> Planner::plan(const Strategy& strategy) {
  SIBYL_CHECK(check_strategy(*graph_, strategy));
  const Result<Stage>& program = program_of(strategy);
  if (!program) return tl::unexpected(program.error());
  if (strategy.stages() == 1) return make_plan(*graph_, strategy, *program);
  const Cluster& cluster = kernels_->cluster();
  CutCosts costs;
  costs.time = StepTime(strategy, *kernels_);
  const bool same_node = placement(mesh_of(strategy), MeshAxis::pipeline, cluster.devices_per_node).nodes == 1;
  costs.link = [&cluster, same_node](Bytes both_ways) {
    return 2 * cluster.network.point_to_point(both_ways / 2, same_node).time.value();
  };
  const Device& device = cluster.kernels.device();
  if (device.memory.value() > 0) costs.memory = std::max(Bytes{1}, device.memory - device.framework_base);
  return make_plan(*graph_, strategy, *program, costs);
}

Result<Plan> plan_for(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  KernelPrices kernels(cluster);
  return Planner(graph, kernels).plan(strategy);
}

}  // namespace sibyl

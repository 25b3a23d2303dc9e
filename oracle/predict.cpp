#include "oracle/predict.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/bottleneck.h"
#include "oracle/cost/price.h"
#include "oracle/interval.h"
#include "oracle/limits.h"
#include "oracle/memory/footprint.h"
#include "oracle/plan/plan.h"
#include "oracle/reading.h"
#include "oracle/simulate/step.h"

namespace sibyl {
namespace {

constexpr double ninety_percent = 1.6449;  // standard deviations either side of the mean

Result<void> check_devices(const Strategy& strategy, const Cluster& cluster) {
  if (strategy.devices() <= cluster.devices()) return {};
  return fail(ErrorCode::infeasible,
              fmt::format("{} needs {} devices, and {} has {}", parallel_text(strategy), strategy.devices(),
                          cluster.name, cluster.devices()),
              "--parallel", fmt::format("at most data={}", cluster.devices() / strategy.devices_per_replica()));
}

std::vector<OperationCost> operation_costs(const Graph& graph, const Stage& stage, const PricedStage& priced) {
  std::vector<OperationCost> costs;
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&stage.steps[i]);
    if (!compute) continue;
    OperationCost cost{graph[compute->operation].name, std::string(name_of(compute->attributes)), {}, {}};
    if (const auto key = priced.kernels.steps[i].forward) cost.forward = priced.prices[*key].estimate.time;
    if (const auto key = priced.kernels.steps[i].backward) cost.backward = priced.prices[*key].estimate.time;
    costs.push_back(std::move(cost));
  }
  return costs;
}

void describe_plan(const Plan& plan, const PricedStage& priced, const Cluster& cluster, Prediction& prediction) {
  const Strategy& strategy = plan.strategy;
  prediction.devices = strategy.devices();
  prediction.nodes = (strategy.devices() + cluster.devices_per_node - 1) / cluster.devices_per_node;
  prediction.global_batch = strategy.global_batch;
  prediction.micro_batch = plan.micro_batch;
  prediction.micro_batches = strategy.accumulation;
  prediction.buckets = static_cast<int>(priced.messages.size());
  prediction.parallel = parallel_text(strategy);
  prediction.precision = to_string(strategy.precision);
  prediction.optimizer = to_string(strategy.optimizer);
  if (priced.messages.empty() && prediction.breakdown.communication_total.value() <= 0) return;
  const Algorithm algorithm = priced.messages.empty() ? Algorithm::ring : priced.messages.back().estimate.algorithm;
  prediction.algorithm = to_string(algorithm);
  prediction.bytes_sent = bytes_sent_per_step(plan, 0, algorithm);
}

}  // namespace

Result<Prediction> predict(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  SIBYL_CHECK(check_devices(strategy, cluster));
  SIBYL_TRY(const Plan plan, make_plan(graph, strategy));
  const Stage& stage = plan.stages.front();
  const PricedStage priced = price(plan, stage, cluster);
  const Slowdown slowdown{cluster.overlap.compute_slowdown, cluster.overlap.communication_slowdown};
  const SimulatedStep times = simulate_step(stage, priced, slowdown);
  const Uncertainty sure = uncertainty(stage, priced, times.breakdown.communication_exposed, strategy.devices());

  SIBYL_TRY(const Seconds reading, reading_time(plan, cluster));

  Prediction prediction;
  const Seconds alone = times.total + sure.slowest_rank;  // with every sample at hand
  prediction.step_time = std::max(alone, reading);
  const Seconds margin = (reading > alone ? reading * reading_error : sure.standard_deviation) * ninety_percent;
  prediction.interval_low = std::max(Seconds{}, prediction.step_time - margin);
  prediction.interval_high = prediction.step_time + margin;
  prediction.throughput = static_cast<double>(strategy.global_batch) / prediction.step_time.value();
  prediction.memory = footprint(stage, priced, strategy, cluster.kernels.device()).peak;
  prediction.memory_capacity = cluster.kernels.device().memory;
  prediction.fits = prediction.memory_capacity.value() <= 0 || prediction.memory.total <= prediction.memory_capacity;
  prediction.breakdown = times.breakdown;
  prediction.breakdown.io = prediction.step_time - alone;
  prediction.breakdown.io_total = reading;
  // Where reading is what lasts longest, nothing else shortens the step.
  prediction.bottleneck =
      reading > alone ? Bottleneck{"storage: reading samples", 1.0, 1.0 - std::max(alone, reading / 2) / reading}
                      : find_bottleneck(stage, priced, slowdown, times);
  prediction.provenance = sure.provenance;
  prediction.operations = operation_costs(graph, stage, priced);
  describe_plan(plan, priced, cluster, prediction);
  prediction.limits = find_limits(graph, plan, stage, priced, prediction);
  return prediction;
}

}  // namespace sibyl

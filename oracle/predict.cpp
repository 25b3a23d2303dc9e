#include "oracle/predict.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/bottleneck.h"
#include "oracle/cost/framework.h"
#include "oracle/cost/plan_for.h"
#include "oracle/cost/price.h"
#include "oracle/interval.h"
#include "oracle/limits.h"
#include "oracle/memory/footprint.h"
#include "oracle/plan/plan.h"
#include "oracle/plan/precision.h"
#include "oracle/reading.h"
#include "oracle/simulate/pipeline.h"
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

Estimate sum(const Estimate& a, const Estimate& b) {
  const Seconds time = a.time + b.time;
  const double error = time.value() > 0 ? (a.time * a.relative_error + b.time * b.relative_error) / time : 0.0;
  return {time, error, std::max(a.provenance, b.provenance)};
}

void add_operation_costs(const Graph& graph, const Stage& stage, const PricedStage& priced,
                         std::vector<OperationCost>& costs) {
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&stage.steps[i]);
    if (!compute) continue;
    OperationCost cost{graph[compute->operation].name, std::string(name_of(compute->attributes)), {}, {}};
    const StageKernels::OfStep& kernels = priced.kernels.steps[i];
    if (kernels.forward) cost.forward = priced.prices[*kernels.forward].estimate.time;
    if (kernels.backward) cost.backward = priced.prices[*kernels.backward].estimate.time;
    if (kernels.backward_weight) {
      const Estimate& later = priced.prices[*kernels.backward_weight].estimate.time;
      cost.backward = kernels.backward ? sum(cost.backward, later) : later;
    }
    costs.push_back(std::move(cost));
  }
}

void describe_plan(const Plan& plan, const std::vector<PricedStage>& priced, const Cluster& cluster,
                   Prediction& prediction) {
  const Strategy& strategy = plan.strategy;
  prediction.devices = strategy.devices();
  prediction.nodes = (strategy.devices() + cluster.devices_per_node - 1) / cluster.devices_per_node;
  prediction.global_batch = strategy.global_batch;
  prediction.micro_batch = plan.micro_batch;
  prediction.micro_batches = strategy.accumulation;
  prediction.parallel = parallel_text(strategy);
  prediction.precision = to_string(strategy.precision);
  prediction.half_weights = has_half_weights(strategy);
  prediction.optimizer = to_string(strategy.optimizer);
  prediction.zero = strategy.zero;
  prediction.zero_ranks = strategy.zero_ranks;
  if (strategy.recompute != Recompute::none) prediction.recompute = to_string(strategy.recompute);
  prediction.order = order_text(strategy);
  prediction.clip = strategy.clip;
  if (strategy.batch_norm != BatchNorm::replica) prediction.batch_norm = to_string(strategy.batch_norm);
  prediction.fused_norms = strategy.fused_norms;
  prediction.converted_images = strategy.converted_images;
  if (strategy.framework != Framework::sibyl) prediction.framework = to_string(strategy.framework);
  const PricedMessage* last = nullptr;
  bool exchanges = false;  // between operations
  for (const PricedStage& stage : priced) {
    if (stage.messages.size() > prediction.bucket_bytes.size()) {
      prediction.bucket_bytes.clear();
      for (const PricedMessage& message : stage.messages)
        prediction.bucket_bytes.push_back(static_cast<std::int64_t>(message.bytes.value()));
    }
    if (!stage.messages.empty()) last = &stage.messages.back();
    exchanges = exchanges || std::any_of(stage.exchanges.begin(), stage.exchanges.end(),
                                         [](const PricedExchange& e) { return e.forward || e.backward; });
  }
  prediction.buckets = static_cast<int>(prediction.bucket_bytes.size());
  const Algorithm algorithm = last ? last->estimate.algorithm : Algorithm::ring;
  if (last || exchanges) prediction.algorithm = to_string(algorithm);
  for (int coordinate = 0; coordinate < plan.mesh.size(MeshAxis::pipeline); ++coordinate) {
    const int rank = coordinate * plan.mesh.stride(MeshAxis::pipeline);
    const BytesSent sent = bytes_by_kind(plan, rank, algorithm);
    if (sent.total() <= prediction.bytes_sent) continue;
    prediction.bytes_sent = sent.total();
    prediction.bytes_by_kind = sent;
  }
}

// What the kinds of plans are told apart by: one stage, or several.
struct Answer {
  SimulatedStep times;
  Uncertainty sure;
  MemoryBreakdown memory;
  bool exhausted = false;  // memory, on any device
  Bottleneck bottleneck;
  std::size_t slowest = 0;  // coordinate of the pipeline
  PipelineWaits waits;      // its
};

Answer answer_for(const Plan& plan, const std::vector<PricedStage>& priced, Slowdown slowdown, const Cluster& cluster) {
  const Stage& stage = plan.stages.front();
  Answer answer;
  answer.times = simulate_step(stage, priced.front(), slowdown);
  answer.sure = uncertainty(stage, priced.front(), answer.times.breakdown.communication_exposed, plan.mesh.size());
  const Footprint used = footprint(stage, priced.front(), plan.strategy, cluster.kernels.device());
  answer.memory = used.peak;
  answer.exhausted = used.exhausted;
  answer.bottleneck = find_bottleneck(stage, priced.front(), slowdown, answer.times);
  return answer;
}

StageCost stage_cost(const Graph& graph, const Plan& plan, const PricedStage& priced, std::size_t index,
                     Slowdown slowdown) {
  const Stage& stage = plan.stages[index];
  const auto time = [&](Turn::Kind kind) {
    return simulate_turn(stage, priced, slowdown, Turn{kind, 0, static_cast<int>(index)}, {true, false}).total;
  };
  StageCost cost;
  cost.first = graph[stage.first].name;
  cost.coordinate = static_cast<int>(index % plan.schedule.size());
  cost.forward = time(Turn::Kind::forward);
  cost.backward = splits_backward(stage) ? time(Turn::Kind::backward_input) + time(Turn::Kind::backward_weight)
                                         : time(Turn::Kind::backward);
  cost.bytes_sent = link_bytes(stage, Pass::forward) + link_bytes(stage, Pass::backward);
  return cost;
}

Answer answer_for_pipeline(const Graph& graph, const Plan& plan, const std::vector<PricedStage>& priced,
                           Slowdown slowdown, const Cluster& cluster, std::vector<StageCost>& stages) {
  const SimulatedPipeline pipeline = simulate_pipeline(plan, priced, slowdown);
  Answer answer;
  answer.times = pipeline.step;
  answer.sure = uncertainty(plan, priced, pipeline.slowest, pipeline.step);
  std::vector<MemoryBreakdown> memory;
  for (std::size_t c = 0; c < plan.schedule.size(); ++c) {
    const Footprint used = footprint(plan, priced, static_cast<int>(c), cluster.kernels.device());
    memory.push_back(used.peak);
    answer.exhausted = answer.exhausted || used.exhausted;
    if (memory.back().total > answer.memory.total) answer.memory = memory.back();
  }
  answer.slowest = pipeline.slowest;
  answer.waits = waits_of(plan, priced, slowdown, pipeline);
  answer.bottleneck = find_bottleneck(plan, priced, slowdown, pipeline, answer.waits);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    stages.push_back(stage_cost(graph, plan, priced[s], s, slowdown));
    const std::size_t c = s % plan.schedule.size();
    stages.back().memory = memory[c].total;
    stages.back().bubble = pipeline.coordinates[c].step.breakdown.bubble;
  }
  return answer;
}

}  // namespace

Result<Prediction> predict(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  SIBYL_CHECK(check_devices(strategy, cluster));
  SIBYL_TRY(const Plan plan, plan_for(graph, strategy, cluster));
  const std::vector<PricedStage> priced = price(plan, cluster);
  const Slowdown slowdown = slowdown_of(strategy, cluster);
  Prediction prediction;
  const Answer answer = plan.stages.size() == 1
                            ? answer_for(plan, priced, slowdown, cluster)
                            : answer_for_pipeline(graph, plan, priced, slowdown, cluster, prediction.stages);
  if (!prediction.stages.empty()) prediction.schedule = schedule_text(strategy);
  SIBYL_TRY(const Seconds reading, reading_time(plan, cluster));

  const Uncertainty& sure = answer.sure;
  const Seconds alone = answer.times.total + sure.slowest_rank;  // with every sample at hand
  prediction.step_time = std::max(alone, reading);
  const Seconds margin = (reading > alone ? reading * reading_error : sure.standard_deviation) * ninety_percent;
  prediction.interval_low = std::max(Seconds{}, prediction.step_time - margin);
  prediction.interval_high = prediction.step_time + margin;
  prediction.throughput = static_cast<double>(strategy.global_batch) / prediction.step_time.value();
  prediction.memory = answer.memory;
  prediction.memory_capacity = cluster.kernels.device().memory;
  const bool known = prediction.memory_capacity.value() > 0;
  prediction.fits = !answer.exhausted && !(known && prediction.memory.total > prediction.memory_capacity);
  prediction.breakdown = answer.times.breakdown;
  prediction.breakdown.io = prediction.step_time - alone;
  prediction.breakdown.io_total = reading;
  // Where reading is what lasts longest, nothing else shortens the step.
  prediction.bottleneck =
      reading > alone ? Bottleneck{"storage: reading samples", 1.0, 1.0 - std::max(alone, reading / 2) / reading}
                      : answer.bottleneck;
  prediction.provenance = sure.provenance;
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    add_operation_costs(graph, plan.stages[s], priced[s], prediction.operations);
  describe_plan(plan, priced, cluster, prediction);
  prediction.limits = find_limits({graph, plan, priced, answer.slowest, answer.waits, prediction});
  return prediction;
}

}  // namespace sibyl

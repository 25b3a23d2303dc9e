#include "oracle/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/quantity.h"
#include "models/untrained.h"
#include "netmodel/explain.h"
#include "oracle/bottleneck.h"
#include "oracle/bottleneck_kind.h"
#include "oracle/cost/framework.h"
#include "oracle/cost/offload.h"
#include "oracle/cost/price.h"
#include "oracle/interval.h"
#include "oracle/limits.h"
#include "oracle/memory/footprint.h"
#include "oracle/plan/context.h"
#include "oracle/plan/plan.h"
#include "oracle/plan/precision.h"
#include "oracle/reading.h"
#include "oracle/remedies.h"
#include "oracle/simulate/pipeline.h"
#include "oracle/simulate/step.h"
#include "oracle/without_effect.h"

namespace sibyl {
namespace {

Result<void> check_devices(const Strategy& strategy, const Cluster& cluster) {
  if (strategy.devices() <= cluster.devices()) return {};
  const int replicas = cluster.devices() / strategy.devices_per_replica();
  return fail(ErrorCode::infeasible,
              fmt::format("{} needs {} devices, and {} has {}", parallel_text(strategy), strategy.devices(),
                          cluster.name, cluster.devices()),
              "--parallel",
              replicas > 0 ? fmt::format("at most data={}, or more nodes (--nodes)", replicas)
                           : fmt::format("one replica takes {} devices: lower degrees, or more nodes (--nodes)",
                                         strategy.devices_per_replica()));
}

Estimate sum(const Estimate& a, const Estimate& b) {
  const Seconds time = a.time + b.time;
  const double error = time.value() > 0 ? (a.time * a.relative_error + b.time * b.relative_error) / time : 0.0;
  return {time, error, std::max(a.provenance, b.provenance)};
}

void add_operation_costs(const Graph& graph, const Stage& stage, const PricedStage& priced, Backend backend,
                         std::vector<OperationCost>& costs) {
  std::vector<Work> works;  // by kernel
  for (const KernelKey& key : priced.kernels.keys) works.push_back(work_of(key, backend));
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
    for (const auto& kernel : {kernels.forward, kernels.backward, kernels.backward_weight}) {
      if (!kernel) continue;
      cost.flops += works[*kernel].flops;
      cost.traffic += works[*kernel].read + works[*kernel].written;
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
  prediction.fp32_gradients = sums_in_full(strategy);
  prediction.optimizer = to_string(strategy.optimizer);
  prediction.zero = strategy.zero;
  prediction.zero_ranks = strategy.zero_ranks;
  prediction.reduce_each = strategy.reduces_each();
  prediction.gather_late = strategy.gather_late && strategy.zero == 3;
  prediction.offload = offload_text(strategy);
  if (strategy.recompute != Recompute::none) prediction.recompute = recompute_text(strategy);
  prediction.order = order_text(strategy);
  prediction.split_until = strategy.split_until;
  prediction.clip = strategy.clip;
  if (strategy.batch_norm != BatchNorm::replica) prediction.batch_norm = to_string(strategy.batch_norm);
  if (strategy.compression.kind != Compression::Kind::none)
    prediction.compress = compression_text(strategy.compression);
  if (strategy.context_exchange != ContextExchange::automatic)
    prediction.context_exchange = to_string(strategy.context_exchange);
  prediction.overlap_tensor = strategy.overlap_tensor;
  prediction.dropless = strategy.dropless;
  prediction.whole_experts = strategy.whole_experts;
  prediction.fused_update = strategy.fused_update;
  prediction.written_update = strategy.written_update;
  prediction.fused_norms = strategy.fused_norms;
  prediction.fused_pointwise = strategy.fused_pointwise;
  prediction.converted_images = strategy.converted_images;
  prediction.converted_norms = strategy.converted_norms;
  if (strategy.attention != AttentionLibrary::flash2) prediction.attention = to_string(strategy.attention);
  if (strategy.framework != Framework::sibyl) prediction.framework = to_string(strategy.framework);
  const PricedMessage* last = nullptr;
  bool exchanges = false;  // between operations
  for (const Stage& stage : plan.stages) {
    std::vector<std::int64_t> bytes;
    for (const GradientSync& sync : stage.gradients)
      for (const Bucket& bucket : sync.buckets) bytes.push_back(bucket.bytes());
    if (bytes.size() > prediction.bucket_bytes.size()) prediction.bucket_bytes = std::move(bytes);
  }
  for (const PricedStage& stage : priced) {
    if (!stage.messages.empty()) last = &stage.messages.back();
    exchanges = exchanges || std::any_of(stage.exchanges.begin(), stage.exchanges.end(),
                                         [](const PricedExchange& e) { return e.forward || e.backward; });
  }
  prediction.buckets = static_cast<int>(prediction.bucket_bytes.size());
  const Algorithm algorithm = last ? last->estimate.algorithm : Algorithm::ring;
  if (last || exchanges) prediction.algorithm = to_string(algorithm);
  // Between CPUs each message goes as the trainer sends it, by its own size.
  const bool cpu = cluster.kernels.device().backend == Backend::cpu;
  const Algorithm counted = cpu ? exchange_algorithm(strategy, cluster) : algorithm;
  for (int coordinate = 0; coordinate < plan.mesh.size(MeshAxis::pipeline); ++coordinate) {
    const int rank = coordinate * plan.mesh.stride(MeshAxis::pipeline);
    const BytesSent sent = bytes_by_kind(plan, rank, counted);
    if (sent.total() <= prediction.bytes_sent) continue;
    prediction.bytes_sent = sent.total();
    prediction.bytes_by_kind = sent;
  }
}

// Others on the network are as the cluster says; beside them the job is alone.
std::string company_of(const Cluster& cluster) {
  const double spread = cluster.composition.spread;
  const std::string devices =
      spread > 0 ? fmt::format("devices differ in speed by {:.2g} % (one standard deviation)", spread * 100)
                 : "all devices are alike";
  const std::string used = used_by_others(cluster.network);
  if (used.empty()) return devices + " and nothing else uses the machine or its network";
  return fmt::format("{}; others use {}, all the time, and nothing else of the machine", devices, used);
}

std::vector<std::string> assumed_of(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  const KernelTable& kernels = cluster.kernels;
  std::vector<std::string> list = graph.assumed;
  const Device& device = kernels.device();
  if (device.framework_assumed && device.framework_base.value() > 0)
    list.push_back(fmt::format("the framework holds {} of a device before the model is there: not measured",
                               to_string(device.framework_base)));
  if (device.backend == Backend::cuda && !kernels.knows_workspace())
    list.emplace_back("kernels need no workspace: none was measured on this device, so memory may be short of it");
  const DType type = strategy.precision == Precision::fp8 ? DType::f8e4m3 : compute_type(strategy.precision);
  if (device.backend == Backend::cuda && size_in_bytes(type) <= 2 && !device.peak.contains(type))
    list.push_back(fmt::format("the device has no arithmetic in {}: products take as long as in fp32",
                               to_string(strategy.precision)));
  if (has_half_weights(strategy) && strategy.precision == Precision::bf16)
    list.emplace_back("gradients are summed and sent in bf16; Megatron-LM has them in f32, twice as large");
  for (const UntrainedOutput& left : graph.untrained)
    list.push_back(untrained_sentence(left) + ": neither trained nor held in memory");
  for (std::string& sentence : assumed_outside(strategy, cluster)) list.push_back(std::move(sentence));
  if (strategy.devices() > 1) list.push_back(company_of(cluster));
  return list;
}

// A plan and what its step comes to.
struct Worked {
  Plan plan;
  std::vector<PricedStage> priced;
  Slowdown slowdown;
  std::optional<SimulatedPipeline> pipeline;  // where there are several stages
  SimulatedStep times;
  Seconds alone, reading;               // of a step with every sample at hand; of its samples from storage
  std::vector<MemoryBreakdown> memory;  // by coordinate of the pipeline
  bool exhausted = false;               // on any device
  Evaluation evaluation;
};

void add_memory(Worked& worked, const Footprint& used) {
  worked.memory.push_back(used.peak);
  worked.exhausted = worked.exhausted || used.exhausted;
  MemoryBreakdown& fullest = worked.evaluation.memory;
  if (worked.memory.size() == 1 || used.peak.needed() > fullest.needed()) fullest = used.peak;
}

Uncertainty work_stage(Worked& worked, const Cluster& cluster, const Cancelled& cancelled) {
  const Stage& stage = worked.plan.stages.front();
  const PricedStage& priced = worked.priced.front();
  worked.times = simulate_step(stage, priced, worked.slowdown, {}, cancelled);
  add_memory(worked, footprint(stage, priced, worked.plan.strategy, cluster.kernels.device()));
  return uncertainty(stage, priced, worked.times.breakdown, worked.plan.mesh.size());
}

// Cancelled: with times that mean nothing, or the memory of some devices alone.
Uncertainty work_pipeline(Worked& worked, const Cluster& cluster, const Cancelled& cancelled) {
  worked.pipeline = simulate_pipeline(worked.plan, worked.priced, worked.slowdown, {}, cancelled);
  worked.times = worked.pipeline->step;
  for (std::size_t c = 0; c < worked.plan.schedule.size() && !is_true(cancelled); ++c)
    add_memory(worked, footprint(worked.plan, worked.priced, static_cast<int>(c), cluster.kernels.device()));
  return uncertainty(worked.plan, worked.priced, worked.pipeline->slowest, worked.times);
}

Seconds with_launches(const Worked& worked, double factor, const Cancelled& cancelled) {
  const Relief relief{.host = factor};
  return worked.pipeline
             ? simulate_pipeline(worked.plan, worked.priced, worked.slowdown, relief, cancelled).step.total
             : simulate_step(worked.plan.stages.front(), worked.priced.front(), worked.slowdown, relief, cancelled)
                   .total;
}

// By how much the step is off, in standard deviations, where launches take longer or shorter by a factor that they keep
// to nine times out of ten. What a host takes errs by factors, and a step of which the device has its share cannot
// shrink as much as it can grow.
struct HostDoubt {
  Seconds faster, slower;
};
HostDoubt host_doubt(const Worked& worked, const Device& device, const Cancelled& cancelled) {
  if (device.dispatch_error <= 0) return {};
  const double factor = std::pow(1 + device.dispatch_error, ninety_percent);
  const Seconds total = worked.times.total;
  HostDoubt doubt{.faster = {}, .slower = (with_launches(worked, factor, cancelled) - total) / ninety_percent};
  if (worked.times.breakdown.host > Seconds{})
    doubt.faster = (total - with_launches(worked, 1 / factor, cancelled)) / ninety_percent;
  return doubt;
}

Result<Worked> work(Plan plan, KernelPrices& kernels, const Cancelled& cancelled) {
  const Cluster& cluster = kernels.cluster();
  Worked worked;
  worked.plan = std::move(plan);
  const Strategy& strategy = worked.plan.strategy;
  worked.priced = price(worked.plan, kernels);
  worked.slowdown = slowdown_of(strategy, cluster);
  if (is_true(cancelled)) return interrupted();
  Uncertainty sure = worked.plan.stages.size() == 1 ? work_stage(worked, cluster, cancelled)
                                                    : work_pipeline(worked, cluster, cancelled);
  if (is_true(cancelled)) return interrupted();
  const HostDoubt doubt = host_doubt(worked, cluster.kernels.device(), cancelled);
  if (is_true(cancelled)) return interrupted();
  StepError below = sure.error;
  add_host_error(below, doubt.faster);
  add_host_error(sure.error, doubt.slower);
  SIBYL_TRY(worked.reading, reading_time(worked.plan, cluster));
  worked.alone = worked.times.total + sure.slowest_rank;

  Evaluation& result = worked.evaluation;
  result.step_time = std::max(worked.alone, worked.reading);
  if (worked.reading > worked.alone) sure.error = below = {{}, worked.reading * reading_error};
  result.error = std::move(sure.error);
  result.interval_low = result.step_time * lower_end(standard_deviation(below) * ninety_percent / result.step_time);
  result.interval_high = result.step_time + standard_deviation(result.error) * ninety_percent;
  result.throughput = static_cast<double>(strategy.global_batch) / result.step_time.value();
  const OutsideBytes outside = outside_bytes(worked.plan, cluster);
  result.host_memory = outside.host;
  result.storage = outside.storage;
  result.memory_capacity = cluster.kernels.device().memory;
  const bool known = result.memory_capacity.value() > 0;
  result.fits = !worked.exhausted && !(known && result.memory.needed() > result.memory_capacity);
  result.breakdown = worked.times.breakdown;
  result.breakdown.io = result.step_time - worked.alone;
  result.breakdown.io_total = worked.reading;
  result.provenance = sure.provenance;
  return worked;
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

std::vector<StageCost> stage_costs(const Graph& graph, const Worked& worked) {
  std::vector<StageCost> costs;
  for (std::size_t s = 0; worked.pipeline && s < worked.plan.stages.size(); ++s) {
    costs.push_back(stage_cost(graph, worked.plan, worked.priced[s], s, worked.slowdown));
    const std::size_t c = s % worked.plan.schedule.size();
    costs.back().memory = worked.memory[c].needed();
    costs.back().bubble = worked.pipeline->coordinates[c].step.breakdown.bubble;
  }
  return costs;
}

// Where reading is what lasts longest, nothing else shortens the step.
Bottleneck bottleneck_of(const Worked& worked, const PipelineWaits& waits, const Cancelled& cancelled) {
  if (worked.reading > worked.alone)
    return {bottleneck_name(BottleneckKind::reading), 1.0,
            1.0 - std::max(worked.alone, worked.reading / 2) / worked.reading};
  return worked.pipeline
             ? find_bottleneck(worked.plan, worked.priced, worked.slowdown, *worked.pipeline, waits, cancelled)
             : find_bottleneck(worked.plan.stages.front(), worked.priced.front(), worked.slowdown, worked.times,
                               cancelled);
}

}  // namespace

Result<Evaluation> Evaluator::evaluate(const Strategy& strategy, const Cancelled& cancelled) {
  SIBYL_CHECK(check_devices(strategy, kernels_->cluster()));
  SIBYL_TRY(Plan plan, planner_.plan(strategy));
  SIBYL_TRY(Worked worked, work(std::move(plan), *kernels_, cancelled));
  return std::move(worked.evaluation);
}

Result<Prediction> Evaluator::predict(const Strategy& strategy, const Cancelled& cancelled) {
  const Cluster& cluster = kernels_->cluster();
  SIBYL_CHECK(check_devices(strategy, cluster));
  SIBYL_TRY(Plan plan, planner_.plan(strategy));
  if (is_true(cancelled)) return interrupted();
  SIBYL_TRY(const Worked worked, work(std::move(plan), *kernels_, cancelled));
  if (is_true(cancelled)) return interrupted();
  Prediction prediction;
  static_cast<Evaluation&>(prediction) = worked.evaluation;
  prediction.stages = stage_costs(*graph_, worked);
  if (worked.pipeline) prediction.schedule = schedule_text(strategy);
  const PipelineWaits waits = worked.pipeline
                                  ? waits_of(worked.plan, worked.priced, worked.slowdown, *worked.pipeline, cancelled)
                                  : PipelineWaits{};
  prediction.bottleneck = bottleneck_of(worked, waits, cancelled);
  if (is_true(cancelled)) return interrupted();
  for (std::size_t s = 0; s < worked.plan.stages.size(); ++s)
    add_operation_costs(*graph_, worked.plan.stages[s], worked.priced[s], cluster.kernels.device().backend,
                        prediction.operations);
  describe_plan(worked.plan, worked.priced, cluster, prediction);
  prediction.assumed = assumed_of(*graph_, strategy, cluster);
  if (auto gathered = gathered_instead(*graph_, worked.plan)) prediction.assumed.push_back(*std::move(gathered));
  prediction.without_effect = without_effect(*graph_, worked.plan, cluster.kernels.device());
  const std::size_t slowest = worked.pipeline ? worked.pipeline->slowest : 0;
  const PricedPlan priced{*graph_,    cluster,  worked.plan, worked.priced, slowest, waits, worked.times.total,
                          prediction, cancelled};
  prediction.limits = find_limits(priced);
  if (is_true(cancelled)) return interrupted();
  prediction.bottleneck.relieved_by = remedies(prediction.bottleneck, priced, prediction.limits);
  return prediction;
}

Result<PlannedStep> Evaluator::step(const Strategy& strategy, const Cancelled& cancelled) {
  const Cluster& cluster = kernels_->cluster();
  SIBYL_CHECK(check_devices(strategy, cluster));
  SIBYL_TRY(Plan plan, planner_.plan(strategy));
  if (is_true(cancelled)) return interrupted();
  SIBYL_TRY(Worked worked, work(std::move(plan), *kernels_, cancelled));
  if (is_true(cancelled)) return interrupted();
  PlannedStep step;
  static_cast<Evaluation&>(step.prediction) = std::move(worked.evaluation);
  describe_plan(worked.plan, worked.priced, cluster, step.prediction);
  step.plan = std::move(worked.plan);
  step.priced = std::move(worked.priced);
  step.slowdown = worked.slowdown;
  step.pipeline = std::move(worked.pipeline);
  return step;
}

Result<Prediction> predict(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                           const Cancelled& cancelled) {
  return Evaluator(graph, cluster).predict(strategy, cancelled);
}

}  // namespace sibyl

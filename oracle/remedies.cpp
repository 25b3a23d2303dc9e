#include "oracle/remedies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "oracle/bottleneck_kind.h"
#include "oracle/plan/pointwise.h"
#include "oracle/plan/precision.h"
#include "oracle/plan/zero.h"
#include "oracle/remedy.h"

namespace sibyl {
namespace {

// What a bottleneck of another kind than a kernel's is among the limits.
std::vector<std::string_view> as_limits(BottleneckKind kind) {
  switch (kind) {
    case BottleneckKind::exchanges: return {limit_name::layer_collectives, limit_name::halo_exchange};
    case BottleneckKind::stage_links: return {limit_name::pipeline_links};
    case BottleneckKind::gradients: return {limit_name::gradient_exchange, limit_name::gradient_norms};
    case BottleneckKind::imbalance: return {limit_name::pipeline_imbalance};
    case BottleneckKind::bubble: return {limit_name::pipeline_bubble};
    case BottleneckKind::reading: return {limit_name::reading_samples};
    case BottleneckKind::storage:
    case BottleneckKind::host_link: return {limit_name::offloading};
    default: return {};
  }
}

const Limit* largest_of(const std::vector<std::string_view>& names, const std::vector<Limit>& limits) {
  const Limit* largest = nullptr;
  for (const Limit& limit : limits)
    if (std::ranges::find(names, limit.name) != names.end() && (largest == nullptr || limit.share > largest->share))
      largest = &limit;
  return largest;
}

double peak_of(const Device& device, DType type) {
  const auto known = device.peak.find(type);
  return known == device.peak.end() ? 0 : known->second.value();
}

using Names = std::vector<std::string_view>;

// The precisions in which the device computes faster than in the plan's, for an operation of that family.
Names faster_precisions(const PricedPlan& plan, std::string_view family) {
  const Device& device = plan.cluster.kernels.device();
  const Precision now = plan.plan.strategy.precision;
  Names faster;
  for (const Precision other : {Precision::tf32, Precision::fp16, Precision::bf16})
    if (peak_of(device, compute_type(other)) > peak_of(device, compute_type(now))) faster.push_back(to_string(other));
  // Linear layers alone run in it.
  if (now != Precision::fp8 && faster.empty() && family == Linear::name &&
      peak_of(device, DType::f8e4m3) > peak_of(device, compute_type(now)))
    faster.push_back(to_string(Precision::fp8));
  return faster;
}

// Does any operation of the family work on two bytes in that precision? Some are left in f32.
bool is_shorter_in(Precision precision, const PricedPlan& plan, std::string_view family) {
  return std::ranges::any_of(plan.plan.stages, [&](const Stage& stage) {
    return std::ranges::any_of(stage.steps, [&](const Step& step) {
      const auto* compute = std::get_if<Compute>(&step);
      return compute != nullptr && name_of(compute->attributes) == family &&
             size_in_bytes(operation_type(stage, *compute, {compute_type(precision)}, precision)) <= 2;
    });
  });
}

Names shorter_precisions(const PricedPlan& plan, std::string_view family) {
  Names shorter;
  if (size_in_bytes(compute_type(plan.plan.strategy.precision)) <= 2) return shorter;
  for (const Precision other : {Precision::fp16, Precision::bf16})
    if (peak_of(plan.cluster.kernels.device(), compute_type(other)) > 0 && is_shorter_in(other, plan, family))
      shorter.push_back(to_string(other));
  return shorter;
}

bool can_fuse_pointwise(const PricedPlan& plan, std::string_view family = {}) {
  return !plan.plan.strategy.fused_pointwise && std::ranges::any_of(plan.plan.stages, [&](const Stage& stage) {
    return has_fusible_pointwise(stage, family);
  });
}

// Does the update run as several kernels that could be one (models/training/rules/optimizer.cpp)?
bool can_fuse_update(const Strategy& strategy) {
  switch (strategy.optimizer) {
    case OptimizerKind::momentum:
    case OptimizerKind::adam:
    case OptimizerKind::adamw: return !strategy.fused_update;
    case OptimizerKind::sgd: return strategy.written_update;
    default: return false;
  }
}

// Where a rank has more than one sample, others can take some.
std::string more_devices(const Strategy& strategy) {
  const bool shares_samples = strategy.global_batch > strategy.data * strategy.samplers();
  return shares_samples ? "the same batch on more devices" : "operations that more devices share";
}

std::string of_arithmetic(const PricedPlan& plan, std::string_view family) {
  const Strategy& strategy = plan.plan.strategy;
  const Names faster = faster_precisions(plan, family);
  return those_that_suit({{fmt::format("fewer bits (--precision {})", fmt::join(faster, ", ")), !faster.empty()},
                          {"less that is computed again (--recompute)", strategy.recompute != Recompute::none},
                          {"devices that compute faster"},
                          {more_devices(strategy)}});
}

// What an update reads and writes does not depend on the batch.
std::string of_updates(const PricedPlan& plan) {
  const Strategy& strategy = plan.plan.strategy;
  const bool cuda = plan.cluster.kernels.device().backend == Backend::cuda;
  return those_that_suit(
      {{"one kernel for the update (--fused-update)", cuda && can_fuse_update(strategy)},
       {"state that replicas share (--zero 1)", strategy.zero == 0 && can_shard_more(plan.graph, strategy)},
       {"a lighter optimizer", strategy.optimizer != OptimizerKind::sgd},
       {"devices with more memory bandwidth"}});
}

std::string of_memory_bandwidth(const PricedPlan& plan, std::string_view family) {
  if (family == OptimizerUpdate::name) return of_updates(plan);
  const Names shorter = shorter_precisions(plan, family);
  return those_that_suit(
      {{fmt::format("values of two bytes (--precision {})", fmt::join(shorter, ", ")), !shorter.empty()},
       {"operations in one kernel (--fused-pointwise)", can_fuse_pointwise(plan, family)},
       {"devices with more memory bandwidth"},
       {more_devices(plan.plan.strategy)}});
}

std::string of_dispatch(const PricedPlan& plan) {
  return those_that_suit({{"fewer, larger micro-batches", plan.plan.strategy.accumulation > 1},
                          {"more samples a device for the same launches"},
                          {"fewer kernels (--fused-pointwise)", can_fuse_pointwise(plan)},
                          {"a host that launches faster"}});
}

}  // namespace

std::string remedies(const Bottleneck& bottleneck, const PricedPlan& plan, const std::vector<Limit>& limits) {
  const auto parts = parts_of_bottleneck(bottleneck.name);
  if (!parts) return "";
  if (const Limit* limit = largest_of(as_limits(parts->kind), limits)) return limit->relief;
  switch (parts->kind) {
    case BottleneckKind::compute: return of_arithmetic(plan, parts->what);
    case BottleneckKind::memory_bandwidth: return of_memory_bandwidth(plan, parts->what);
    case BottleneckKind::dispatch: return of_dispatch(plan);
    default: return "a faster network";  // too little of it for a limit
  }
}

}  // namespace sibyl

#include "oracle/remedies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sibyl {
namespace {

using Parts = std::vector<std::string>;

const std::string_view update_family = OptimizerUpdate::name;

// What a bottleneck of another kind than a kernel's is called among the limits: by how its name begins, first match.
struct AsLimits {
  std::string_view begins;
  std::array<std::string_view, 2> limits;
};
constexpr AsLimits as_limits[] = {
    {"network: exchanges between operations", {"layer-wise collectives", "halo exchange"}},
    {"network: between pipeline stages", {"pipeline links"}},
    {"network: ", {"gradient exchange", "norms of gradients"}},
    {"pipeline imbalance", {"pipeline imbalance"}},
    {"pipeline bubble", {"pipeline bubble"}},
    {"storage: reading samples", {"reading samples"}},
    {"storage: ", {"offloading"}},
    {"host link: ", {"offloading"}},
};

const Limit* largest_of(const std::array<std::string_view, 2>& names, const std::vector<Limit>& limits) {
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

// The precisions in which the device computes faster than in the plan's, for an operation of that family.
Parts faster_precisions(const PricedPlan& plan, std::string_view family) {
  const Device& device = plan.cluster.kernels.device();
  const Precision now = plan.plan.strategy.precision;
  Parts faster;
  for (const Precision other : {Precision::tf32, Precision::fp16, Precision::bf16})
    if (peak_of(device, compute_type(other)) > peak_of(device, compute_type(now)))
      faster.emplace_back(to_string(other));
  // Linear layers alone run in it.
  if (now != Precision::fp8 && faster.empty() && family == Linear::name &&
      peak_of(device, DType::f8e4m3) > peak_of(device, compute_type(now)))
    faster.emplace_back(to_string(Precision::fp8));
  return faster;
}

// Whether a rank has more than one sample, so that other ranks could take some.
bool has_samples_to_share(const Strategy& strategy) {
  return strategy.global_batch > strategy.degree(MeshAxis::data) * strategy.degree(MeshAxis::expert);
}

void add_more_devices(const PricedPlan& plan, Parts& parts) {
  parts.emplace_back(has_samples_to_share(plan.plan.strategy) ? "the same batch on more devices"
                                                              : "operations that more devices share");
}

Parts of_arithmetic(const PricedPlan& plan, std::string_view family) {
  Parts parts;
  if (const Parts faster = faster_precisions(plan, family); !faster.empty())
    parts.push_back(fmt::format("fewer bits (--precision {})", fmt::join(faster, ", ")));
  if (plan.plan.strategy.recompute != Recompute::none) parts.emplace_back("less that is computed again (--recompute)");
  parts.emplace_back("devices that compute faster");
  add_more_devices(plan, parts);
  return parts;
}

// What an update reads and writes does not depend on the batch.
Parts of_updates(const PricedPlan& plan) {
  const Strategy& strategy = plan.plan.strategy;
  Parts parts;
  if (!strategy.fused_update && plan.cluster.kernels.device().backend == Backend::cuda)
    parts.emplace_back("one kernel for the update (--fused-update)");
  if (strategy.zero == 0 && strategy.data > 1) parts.emplace_back("state that replicas share (--zero 1)");
  if (strategy.optimizer != OptimizerKind::sgd) parts.emplace_back("a lighter optimizer");
  parts.emplace_back("devices with more memory bandwidth");
  return parts;
}

Parts of_memory_bandwidth(const PricedPlan& plan, std::string_view family) {
  if (family == update_family) return of_updates(plan);
  const Strategy& strategy = plan.plan.strategy;
  const Device& device = plan.cluster.kernels.device();
  Parts parts, shorter;
  if (size_in_bytes(compute_type(strategy.precision)) > 2)
    for (const Precision other : {Precision::fp16, Precision::bf16})
      if (peak_of(device, compute_type(other)) > 0) shorter.emplace_back(to_string(other));
  if (!shorter.empty()) parts.push_back(fmt::format("values of two bytes (--precision {})", fmt::join(shorter, ", ")));
  if (!strategy.fused_pointwise && (family == Unary::name || family == Binary::name))
    parts.emplace_back("operations in one kernel (--fused-pointwise)");
  parts.emplace_back("devices with more memory bandwidth");
  add_more_devices(plan, parts);
  return parts;
}

Parts of_dispatch(const PricedPlan& plan) {
  Parts parts;
  if (plan.plan.strategy.accumulation > 1) parts.emplace_back("fewer, larger micro-batches");
  parts.emplace_back("more samples a device for the same launches");
  if (!plan.plan.strategy.fused_pointwise) parts.emplace_back("fewer kernels (--fused-pointwise)");
  parts.emplace_back("a host that launches faster");
  return parts;
}

Parts of_kernels(const Bottleneck& bottleneck, const PricedPlan& plan) {
  const std::string_view name = bottleneck.name;
  const std::size_t colon = name.find(": ");
  const std::string_view kind = name.substr(0, colon);
  const std::string_view family = colon == name.npos ? "" : name.substr(colon + 2);
  if (kind == "compute") return of_arithmetic(plan, family);
  if (kind == "memory bandwidth") return of_memory_bandwidth(plan, family);
  if (kind == "host dispatch") return of_dispatch(plan);
  return {"a faster network"};
}

}  // namespace

std::string remedies(const Bottleneck& bottleneck, const PricedPlan& plan, const std::vector<Limit>& limits) {
  const auto* as =
      std::ranges::find_if(as_limits, [&](const AsLimits& one) { return bottleneck.name.starts_with(one.begins); });
  if (as != std::end(as_limits))
    if (const Limit* limit = largest_of(as->limits, limits)) return limit->relief;
  return fmt::format("{}", fmt::join(of_kernels(bottleneck, plan), "; "));
}

}  // namespace sibyl

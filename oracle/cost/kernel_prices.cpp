#include "oracle/cost/kernel_prices.h"

#include "oracle/cost/conversions.h"

namespace sibyl {
namespace {

Bound bound_of(const KernelKey& key, const Device& device) {
  const Work work = work_of(key, device.backend);
  const auto peak = device.peak.find(key.signature.dtype);
  if (peak == device.peak.end() || device.memory_bandwidth.value() <= 0) return Bound::compute;
  return work.flops / peak->second > (work.read + work.written) / device.memory_bandwidth ? Bound::compute
                                                                                          : Bound::memory;
}

}  // namespace

// Two threads may work out the same: one of the two answers, which are the same, is kept.
const PricedKernel& KernelPrices::of(const KernelKey& key, const Strategy& strategy) {
  // tf32 is allowed, not ordered: who has no such units computes in f32.
  if (key.signature.dtype == DType::tf32 && !cluster_->kernels.device().peak.contains(DType::tf32)) {
    KernelKey plain = key;
    plain.signature.dtype = DType::f32;
    return of(plain, strategy);
  }
  const Asked asked{key, hash_value(key)};
  const std::size_t conversions = strategy.converted_images ? 1 : strategy.converted_norms ? 2 : 0;
  const std::size_t libraries = kinds_of_conversions * static_cast<std::size_t>(strategy.attention) + conversions;
  Part& part = known_[libraries][asked.hash % parts];
  {
    const std::lock_guard lock(part.mutex);
    const auto found = part.known.find(asked);
    if (found != part.known.end()) return found->second;
  }
  const KernelTable& kernels = cluster_->kernels;
  const PricedKernel priced{estimate(kernels, key, strategy), bound_of(key, kernels.device())};
  const std::lock_guard lock(part.mutex);
  return part.known.try_emplace(Held{key, asked.hash}, priced).first->second;
}

}  // namespace sibyl

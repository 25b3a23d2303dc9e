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

const PricedKernel& KernelPrices::of(const KernelKey& key, const Strategy& strategy) {
  auto& known = known_[strategy.converted_images ? 1 : 0];
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const KernelTable& kernels = cluster_->kernels;
  return known.emplace(key, PricedKernel{estimate(kernels, key, strategy), bound_of(key, kernels.device())})
      .first->second;
}

}  // namespace sibyl

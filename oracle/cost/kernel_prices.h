// What kernels take on a cluster's devices, each looked up and interpolated once, however many plans run it.
#pragma once

#include <array>
#include <unordered_map>

#include "calibration/cluster.h"
#include "oracle/strategy.h"
#include "profiler/kernel_key.h"

namespace sibyl {

// What a kernel is bound by on this device, by its roofline.
enum class Bound { compute, memory };

struct PricedKernel {
  KernelEstimate estimate;
  Bound bound = Bound::compute;
};

// Not for several threads at once.
class KernelPrices {
 public:
  // The cluster must outlive it.
  explicit KernelPrices(const Cluster& cluster) : cluster_(&cluster) {}

  // With what the strategy's library of kernels does around it (cost/conversions.h). Good until the next call.
  const PricedKernel& of(const KernelKey& key, const Strategy& strategy);
  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }

 private:
  const Cluster* cluster_;
  std::array<std::unordered_map<KernelKey, PricedKernel>, 2> known_;  // images as they lie, and converted
};

}  // namespace sibyl

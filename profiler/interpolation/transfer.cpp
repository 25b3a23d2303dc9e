#include "profiler/interpolation/transfer.h"

#include <cmath>

#include "profiler/interpolation/ideal.h"

namespace sibyl::interpolation {
namespace {

// One standard deviation, as `sibyl kernels --hide` (where a device's kin lend) and `--hide-architecture` found it over
// all measured devices: of each device the larger of median / 0.674 and 90 % quantile / 1.645, and of those the mean.
struct TransferError {
  double kin, strangers;  // devices of one architecture, and of two
};

TransferError transfer_error(const Attributes& attributes) {
  if (std::holds_alternative<Convolution>(attributes)) return {0.18, 0.63};
  if (std::holds_alternative<Attention>(attributes)) return {0.14, 0.62};
  if (std::holds_alternative<Linear>(attributes) || std::holds_alternative<MatMul>(attributes) ||
      std::holds_alternative<GroupedLinear>(attributes))
    return {0.25, 0.40};
  if (std::holds_alternative<Unary>(attributes) || std::holds_alternative<Binary>(attributes)) return {0.05, 0.10};
  return {0.24, 0.32};  // softmax and layer norm; what else is bound by memory is taken to be like them
}

bool are_twins(const Device& a, const Device& b) {
  return a.backend == b.backend && a.multiprocessors == b.multiprocessors && a.peak == b.peak &&
         a.memory_bandwidth == b.memory_bandwidth && a.cache == b.cache;
}

}  // namespace

KernelEstimate carried(KernelEstimate estimate, const KernelKey& key, const Device& from, const Device& to) {
  const bool kin = !to.architecture.empty() && from.architecture == to.architecture;
  if (kin && are_twins(from, to)) return estimate;  // the same silicon with another memory or name
  const TransferError error = transfer_error(key.signature.attributes);
  estimate.time.time *= ideal_time(to, key) / ideal_time(from, key);
  estimate.time.relative_error = std::hypot(estimate.time.relative_error, kin ? error.kin : error.strangers);
  estimate.time.provenance = Provenance::estimated;
  return estimate;
}

}  // namespace sibyl::interpolation

#include "profiler/interpolation/transfer.h"

#include <algorithm>
#include <cmath>

#include "profiler/interpolation/ideal.h"

namespace sibyl::interpolation {

KernelEstimate carried(KernelEstimate estimate, const KernelKey& key, const Device& from, const Device& to) {
  const double ratio = ideal_time(to, key) / ideal_time(from, key);
  const bool kin = !to.architecture.empty() && from.architecture == to.architecture;
  estimate.time.time *= ratio;
  if (kin && std::abs(ratio - 1) < 1e-9) return estimate;  // the same silicon, where this kernel is bound
  estimate.time.relative_error = std::hypot(estimate.time.relative_error, kin ? 0.15 : 0.3);
  estimate.time.provenance = Provenance::estimated;
  return estimate;
}

}  // namespace sibyl::interpolation

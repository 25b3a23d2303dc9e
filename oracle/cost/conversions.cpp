#include "oracle/cost/conversions.h"

#include <algorithm>

#include "oracle/plan/image_kernels.h"
#include "oracle/plan/precision.h"

namespace sibyl {
namespace {

KernelEstimate padded_estimate(const KernelTable& kernels, const KernelKey& key) {
  KernelEstimate plain = kernels.estimate(key);
  if (plain.time.provenance == Provenance::measured || kernels.device().backend != Backend::cuda) return plain;
  const std::optional<Signature> padded = with_padded_channels(key.signature);
  return padded ? kernels.estimate({*padded, key.pass, key.gradients}) : plain;
}

}  // namespace

KernelEstimate estimate(const KernelTable& kernels, const KernelKey& key, const Strategy& strategy) {
  KernelEstimate result = padded_estimate(kernels, key);
  if (!strategy.converted_images) return result;
  Estimate& whole = result.time;
  double error = whole.relative_error * whole.time.value();
  for (const Shape& image : converted_images(key.signature, key.pass, key.gradients)) {
    const Signature copy{Copy{}, {image}, {image}, storage_type(key.signature.dtype)};
    const Estimate conversion = kernels.estimate({copy, Pass::forward, 0}).time;
    whole.time += conversion.time;
    error += conversion.relative_error * conversion.time.value();
    whole.provenance = std::max(whole.provenance, conversion.provenance);
  }
  if (whole.time.value() > 0) whole.relative_error = error / whole.time.value();
  return result;
}

}  // namespace sibyl

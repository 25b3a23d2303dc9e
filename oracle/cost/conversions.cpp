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

KernelEstimate converted_estimate(const KernelTable& kernels, const KernelKey& key) {
  KernelEstimate result = padded_estimate(kernels, key);
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

bool may_leave_tensor_cores(const Signature& signature) {
  return signature.dtype == DType::tf32 && std::holds_alternative<Convolution>(signature.attributes);
}

}  // namespace

KernelEstimate estimate(const KernelTable& kernels, const KernelKey& key, const Strategy& strategy) {
  if (std::holds_alternative<Attention>(key.signature.attributes))
    return attention_by(strategy.attention, kernels, key);
  if (!strategy.converted_images) return padded_estimate(kernels, key);
  KernelEstimate converted = converted_estimate(kernels, key);
  if (!may_leave_tensor_cores(key.signature)) return converted;
  KernelKey plain = key;
  plain.signature.dtype = DType::f32;
  KernelEstimate in_f32 = kernels.estimate(plain);
  return in_f32.time.time < converted.time.time ? in_f32 : converted;
}

}  // namespace sibyl

#include "oracle/cost/conversions.h"

#include <algorithm>
#include <vector>

#include "oracle/plan/image_kernels.h"
#include "oracle/plan/precision.h"

namespace sibyl {
namespace {

// Of a copy: a transposition reads or writes in pieces. The median of 22 convolutions of volumes, timed with channels
// first and last on two GPUs, is 0.74 and 0.69 of the memory's rate, where copies reach 0.88 and 0.84.
constexpr double transposition = 1.2;

KernelEstimate padded_estimate(const KernelTable& kernels, const KernelKey& key) {
  KernelEstimate plain = kernels.estimate(key);
  if (plain.time.provenance == Provenance::measured || kernels.device().backend != Backend::cuda) return plain;
  const std::optional<Signature> padded = with_padded_channels(key.signature);
  return padded ? kernels.estimate({*padded, key.pass, key.gradients}) : plain;
}

// What the strategy's library transposes around the kernel.
std::vector<Shape> converted(const KernelKey& key, const Strategy& strategy) {
  if (strategy.converted_images) return converted_images(key.signature, key.pass, key.gradients);
  if (strategy.converted_norms) return converted_for_norm(key.signature, key.pass);
  return {};
}

KernelEstimate converted_estimate(const KernelTable& kernels, const KernelKey& key, const Strategy& strategy) {
  KernelEstimate result = padded_estimate(kernels, key);
  const std::vector<Shape> images = converted(key, strategy);
  if (images.empty()) return result;
  Estimate& whole = result.time;
  double error = whole.relative_error * whole.time.value();
  for (const Shape& image : images) {
    const Signature copy{Copy{}, {image}, {image}, storage_type(key.signature.dtype)};
    Estimate conversion = kernels.estimate({copy, Pass::forward, 0}).time;
    conversion.time *= transposition;
    whole.time += conversion.time;
    error += conversion.relative_error * conversion.time.value();
    whole.provenance = std::max(whole.provenance, conversion.provenance);
  }
  if (whole.time.value() > 0) whole.relative_error = error / whole.time.value();
  return result;
}

bool may_leave_tensor_cores(const Signature& signature, const Strategy& strategy) {
  return strategy.converted_images && signature.dtype == DType::tf32 &&
         std::holds_alternative<Convolution>(signature.attributes);
}

}  // namespace

KernelEstimate estimate(const KernelTable& kernels, const KernelKey& key, const Strategy& strategy) {
  if (std::holds_alternative<Attention>(key.signature.attributes))
    return attention_by(strategy.attention, kernels, key);
  KernelEstimate as_asked = converted_estimate(kernels, key, strategy);
  if (!may_leave_tensor_cores(key.signature, strategy)) return as_asked;
  KernelKey plain = key;
  plain.signature.dtype = DType::f32;
  KernelEstimate in_f32 = kernels.estimate(plain);
  return in_f32.time.time < as_asked.time.time ? in_f32 : as_asked;
}

}  // namespace sibyl

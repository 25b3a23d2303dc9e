// Whose kernels compute fused attention. Libraries differ by a factor of two on one device: FlashAttention-2 was
// written for Ampere, and PyTorch takes it on Hopper, too, where cuDNN's and FlashAttention-3's use what is new. A
// device whose attention was timed with one library may say how fast others are at a few shapes
// (Device::attention_speeds); other shapes are carried over from what was timed, by the ratio of the two at a shape of
// the same length and width of heads:
//
//   time = timed forward x (timed speed / the library's speed, both at the reference shape) x FLOPs of the pass
//
// The reference shape has 16,384 tokens of 2,048 features, as Shah et al. ("FlashAttention-3", 2024) measure. Backward
// counts 2.5 times the FLOPs of forward; causal attention half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "models/training/training.h"

namespace sibyl {

struct KernelEstimate;
struct KernelKey;
class KernelTable;

enum class AttentionLibrary {
  timed,   // what the calibration timed
  flash1,  // FlashAttention, and Triton's of its time: half as fast as flash2 (Dao, "FlashAttention-2", 2023)
  flash2,  // what PyTorch's scaled_dot_product_attention takes first
  flash3,
  cudnn,  // what Transformer Engine takes on Hopper
};

inline constexpr std::size_t attention_libraries = 5;

std::string_view to_string(AttentionLibrary library);
Result<AttentionLibrary> parse_attention_library(std::string_view text);
std::vector<std::string> attention_library_names();

// Measured at the reference shape.
struct AttentionSpeed {
  AttentionLibrary library = AttentionLibrary::flash2;
  Pass pass = Pass::forward;
  bool causal = false;
  std::int64_t head_dim = 0;
  std::int64_t sequence = 0;
  FlopsPerSecond speed;
};

// Between what was measured, linear in the logarithms of length and width, and beyond as at the end. Of a causal pass
// that was not measured, as much slower than the full one as forward is. None where the library is not known.
std::optional<FlopsPerSecond> attention_speed(const std::vector<AttentionSpeed>& known, AttentionLibrary library,
                                              Pass pass, bool causal, std::int64_t head_dim, std::int64_t sequence);

// What a kernel of attention takes by this library: as timed where the device does not know it, and for types of four
// bytes, which have none of these kernels. `key` is one of Attention.
KernelEstimate attention_by(AttentionLibrary library, const KernelTable& kernels, const KernelKey& key);

}  // namespace sibyl

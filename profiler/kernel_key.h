// A KernelKey names one measurable piece of compute: what runs (Signature), in which pass, and which gradients the
// backward pass computes. Kernels with equal keys take the same time on the same device.
//
// Text form, used in calibration files: "forward SIGNATURE" or "backward:101 SIGNATURE", where the digits are the
// gradient mask, operand 0 first.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "models/signature.h"
#include "models/training/training.h"

namespace sibyl {

struct KernelKey {
  Signature signature;
  Pass pass = Pass::forward;
  std::uint32_t gradients = 0;  // 0 in forward

  bool operator==(const KernelKey&) const = default;
};

std::string to_string(const KernelKey& key);
Result<KernelKey> parse_kernel_key(std::string_view text);
std::size_t hash_value(const KernelKey& key);

// FLOPs and least bytes of the key's pass.
Work work_of(const KernelKey& key, Backend backend);

// All that its operands and results lie in, each once; in backward with their gradients, of an update with the gradient
// and the optimizer's state.
Bytes operand_bytes(const KernelKey& key);
// And what its first operand, in backward its results' gradients, are made from when it is timed
// (profiler/torch/bench.h).
Bytes timed_bytes(const KernelKey& key);

}  // namespace sibyl

template <>
struct std::hash<sibyl::KernelKey> {
  std::size_t operator()(const sibyl::KernelKey& key) const noexcept { return sibyl::hash_value(key); }
};

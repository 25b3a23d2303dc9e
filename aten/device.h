// Where this process's tensors are made and computed: the CPU, unless use_cuda() has been called. All that differs
// between CPU and CUDA, and between versions of libtorch that do, is behind this file.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "base/result.h"
#include "base/units.h"

namespace sibyl::aten {

// From here on: CUDA device `index`. An Error where libtorch was built without CUDA, or finds no such device. Once,
// before the first tensor.
Result<void> use_cuda(int index);
bool on_cuda();
at::Device compute_device();

// f32 products on tensor cores (TF32), or not. Only CUDA knows the difference.
void allow_tf32(bool allow);

// All that was enqueued is done; nothing to wait for on the CPU.
void wait_for_device();

// A leaf like this one on the compute device; itself where it is there already.
at::Tensor to_compute_device(const at::Tensor& tensor);
// On the host, where messages are sent from.
inline at::Tensor to_host(const at::Tensor& tensor) { return tensor.device().is_cpu() ? tensor : tensor.to(at::kCPU); }

// Bytes that live tensors of the compute device hold, and the most since reset_peak(): by the MemoryMeter, or by CUDA's
// caching allocator, which rounds a block up to 512 bytes.
void begin_counting();
std::int64_t live_bytes();
std::int64_t peak_bytes();
void reset_peak();

// Of CUDA: what the allocator holds beyond its blocks' peak (segments, fragmentation), and what the process holds
// beside it (context, libraries). Of the CPU: nothing.
struct HeldMemory {
  Bytes reserved;  // by the allocator, at most
  Bytes context;
};
HeldMemory held_memory();

// Of CUDA: what the device is. Zero on the CPU.
struct DeviceLimits {
  std::string name;
  Bytes memory, cache;
};
DeviceLimits device_limits();

}  // namespace sibyl::aten

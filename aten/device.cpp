#include "aten/device.h"

#include <torch/cuda.h>

#include <string>

#include "aten/cuda.h"
#include "aten/memory.h"

namespace sibyl::aten {
namespace {

int cuda_index = -1;  // the CPU

}  // namespace

Result<void> use_cuda(int index) {
  if (!cuda::compiled())
    return fail("this Sibyl was built with a libtorch that has no CUDA", "--device",
                "build it with a PyTorch that has: docs/gpu.md");
  if (!torch::cuda::is_available()) return fail("libtorch finds no CUDA device or driver here", "--device");
  const auto count = static_cast<int>(torch::cuda::device_count());
  if (index < 0 || index >= count)
    return fail("there is no CUDA device " + std::to_string(index) + ": libtorch finds " + std::to_string(count),
                "--device");
  cuda::select(index);
  cuda_index = index;
  return {};
}

bool on_cuda() { return cuda_index >= 0; }

at::Device compute_device() {
  return on_cuda() ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(cuda_index)) : at::Device(at::kCPU);
}

void allow_tf32(bool allow) {
  at::globalContext().setAllowTF32CuBLAS(allow);
  at::globalContext().setAllowTF32CuDNN(allow);
}

void wait_for_device() {
  if (on_cuda()) torch::cuda::synchronize(cuda_index);
}

at::Tensor to_compute_device(const at::Tensor& tensor) {
  if (!on_cuda() || tensor.device() == compute_device()) return tensor;
  return tensor.detach().to(compute_device()).requires_grad_(tensor.requires_grad());
}

void begin_counting() {
  if (!on_cuda()) MemoryMeter::install();
}
std::int64_t live_bytes() { return on_cuda() ? cuda::live_bytes(cuda_index) : MemoryMeter::live(); }
std::int64_t peak_bytes() { return on_cuda() ? cuda::peak_bytes(cuda_index) : MemoryMeter::peak(); }
void reset_peak() {
  if (on_cuda())
    cuda::reset_peak(cuda_index);
  else
    MemoryMeter::reset_peak();
}

HeldMemory held_memory() { return on_cuda() ? cuda::held_memory(cuda_index) : HeldMemory{}; }
DeviceLimits device_limits() { return on_cuda() ? cuda::limits(cuda_index) : DeviceLimits{}; }

}  // namespace sibyl::aten

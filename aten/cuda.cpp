#include "aten/cuda.h"

#if SIBYL_TORCH_CUDA

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

namespace sibyl::aten::cuda {
namespace {

constexpr std::size_t all = 0;  // of an allocator's statistics: over small and large blocks

auto statistics(int device) {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
}

}  // namespace

bool compiled() { return true; }
void select(int device) { c10::cuda::set_device(static_cast<c10::DeviceIndex>(device)); }
std::int64_t live_bytes(int device) { return statistics(device).allocated_bytes[all].current; }
std::int64_t peak_bytes(int device) { return statistics(device).allocated_bytes[all].peak; }
void reset_peak(int device) { c10::cuda::CUDACachingAllocator::resetPeakStats(static_cast<c10::DeviceIndex>(device)); }

HeldMemory held_memory(int device) {
  const auto stats = statistics(device);
  std::size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  const double used = static_cast<double>(total - free), now = static_cast<double>(stats.reserved_bytes[all].current);
  return {Bytes{static_cast<double>(stats.reserved_bytes[all].peak)}, Bytes{used - now}};
}

DeviceLimits limits(int device) {
  const cudaDeviceProp* p = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device));
  return {p->name, Bytes{static_cast<double>(p->totalGlobalMem)}, Bytes{static_cast<double>(p->l2CacheSize)}};
}

double seconds_of(const std::function<void()>& ahead, const std::function<void()>& enqueue) {
  at::cuda::CUDAEvent start(cudaEventDefault), stop(cudaEventDefault);
  ahead();
  start.record();
  enqueue();
  stop.record();
  stop.synchronize();
  return 1e-3 * static_cast<double>(start.elapsed_time(stop));
}

}  // namespace sibyl::aten::cuda

#else

#include <stdexcept>

namespace sibyl::aten::cuda {
namespace {

// Nobody gets here: use_cuda() has refused.
[[noreturn]] void absent() { throw std::logic_error("libtorch has no CUDA"); }

}  // namespace

bool compiled() { return false; }
void select(int) { absent(); }
std::int64_t live_bytes(int) { absent(); }
std::int64_t peak_bytes(int) { absent(); }
void reset_peak(int) { absent(); }
HeldMemory held_memory(int) { absent(); }
DeviceLimits limits(int) { absent(); }
double seconds_of(const std::function<void()>&, const std::function<void()>&) { absent(); }

}  // namespace sibyl::aten::cuda

#endif

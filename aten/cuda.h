// What needs libtorch's CUDA library: compiled where libtorch has one, else answers that it has not. Behind device.h.
#pragma once

#include <cstdint>
#include <functional>

#include "aten/device.h"

namespace sibyl::aten::cuda {

bool compiled();
void select(int device);
std::int64_t live_bytes(int device);
std::int64_t peak_bytes(int device);
void reset_peak(int device);
HeldMemory held_memory(int device);
DeviceLimits limits(int device);

// Seconds that the device takes for what `enqueue` enqueues, by events on the current stream; `ahead` keeps the device
// busy meanwhile, so that the host's launches are not in it.
double seconds_of(const std::function<void()>& ahead, const std::function<void()>& enqueue);

}  // namespace sibyl::aten::cuda

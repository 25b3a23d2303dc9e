// How long a run takes on the device that computes: wall time on the CPU, time between events on CUDA.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

#include "aten/device.h"

namespace sibyl {

// On CUDA: the device is first kept busy by a pass over more memory than its cache holds, so that operands are cold and
// all launches of `run` are enqueued before it begins; then `warm` runs, then the clock. What two events cost with
// nothing between them is subtracted.
double seconds_on_cuda(const std::function<void()>& warm, const std::function<void()>& run);

// `warm` is not timed.
template <class Warm, class Run>
double seconds_of(Warm&& warm, Run&& run) {
  if (aten::on_cuda()) return seconds_on_cuda(warm, run);
  warm();
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace sibyl

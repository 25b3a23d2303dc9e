// What a device can do at most, and what it takes to reach it. Of this folder alone.
#pragma once

#include "profiler/cudnn/cuda.h"
#include "profiler/cudnn/gpu.h"

namespace sibyl::cudnn {

// Of s a + b, three streams, over arrays that do not fit in any cache: the fastest run.
Result<BytesPerSecond> measure_bandwidth(const Libraries& libraries, const TimingOptions& options);
// Host time to launch one of many empty kernels, while the stream has room for them: the middle of several bursts.
Seconds measure_dispatch(const Libraries& libraries);
// Copies of 4 KiB to 256 MiB.
std::vector<Transfer> measure_transfers(const Libraries& libraries, const TimingOptions& options);
// A product that fills the device.
KernelKey large_product(DType type);

}  // namespace sibyl::cudnn

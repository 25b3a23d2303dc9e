// What a device can do at most, and what it takes to reach it. Of this folder alone.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "profiler/cudnn/cuda.h"
#include "profiler/cudnn/gpu.h"

namespace sibyl::cudnn {

// Of s a + b, three streams, over arrays that do not fit in any cache: the fastest run.
Result<BytesPerSecond> measure_bandwidth(const Libraries& libraries, const TimingOptions& options);
// The rate of a product that fills the device, by type. Left out are those that `time` refuses, as libraries of an
// older CUDA refuse what newer devices compute in; f32's refusal is the Error.
Result<std::map<DType, FlopsPerSecond>> measure_peaks(const std::vector<DType>& types,
                                                      const std::function<Result<Seconds>(const KernelKey&)>& time);
// Host time to launch one of many empty kernels, while the stream has room for them: the middle of several bursts.
Seconds measure_launch(const Libraries& libraries);
// Copies of 4 KiB to 256 MiB.
std::vector<Transfer> measure_transfers(const Libraries& libraries, const TimingOptions& options);
// A product that fills the device.
KernelKey large_product(DType type);
// Of a compute capability, as shipped calibrations call it; empty where none is of it.
std::string architecture_of(int major, int minor);

}  // namespace sibyl::cudnn

// What the processor can do at most with this libtorch, and which libtorch it is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "models/dtype.h"
#include "profiler/torch/timing.h"

namespace sibyl {

// By a large f32 matrix product; by a + s b over arrays that do not fit in any cache (three streams) as far as
// `options.most_memory` lets them be so large. Of this process,
// with whoever else agrees in `options` busy likewise.
Result<FlopsPerSecond> measure_peak(const TimingOptions& options, DType type = DType::f32);
Result<BytesPerSecond> measure_memory_bandwidth(const TimingOptions& options);

// A piece of work like what gradients are exchanged beside: the backward of one of ResNet-50's layers, a 3x3
// convolution with its batch normalisation and ReLU, and of a linear layer; some ms long. For measuring how
// communication slows it. `extent`: of its images; `rows`: of the linear layer's operand.
std::function<void()> typical_work(std::int64_t extent = 28, std::int64_t rows = 64);

// "libtorch", and "blas", "onednn" where libtorch says.
std::map<std::string, std::string> torch_versions();

}  // namespace sibyl

// Shapes as cuDNN wants them: at least two spatial dimensions, and strides that say the layout.
#pragma once

#include "profiler/cudnn/gpu.h"
#include "profiler/cudnn/kernels.h"

namespace sibyl::cudnn {

Shape at_least_four(Shape shape);  // N C W -> N C 1 W
// An attribute of each spatial dimension; `filler` for the one that at_least_four() adds.
Ints spatial(Ints values, std::int64_t filler);
Shape strides_of(const Shape& shape, Layout layout);
inline Shape row_major(const Shape& shape) { return strides_of(shape, Layout::nchw); }
// Of y[N, C, …], which lies so in memory, and a vector[C] along its channels.
Strides channel_broadcast(const Shape& shape, Layout layout);

}  // namespace sibyl::cudnn

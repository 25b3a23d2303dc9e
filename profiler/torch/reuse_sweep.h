// How fast this process reads again what it touched before, in steps of several sizes: what reuse_curve.h reads.
#pragma once

#include <functional>
#include <vector>

#include "profiler/reuse_curve.h"

namespace sibyl {

// Steps of `largest` bytes, half of that, and so on, none of less than 4 MiB. A step walks through its memory, writing,
// and back, reading: as training comes back in backward to what forward left, in reverse, and in the next step to the
// same memory, so that all of it is touched twice. On the way back a block takes what bytes take that were touched so
// long ago; of each power of two from 256 KiB on, and no more than the step, the median of those nearest to it counts,
// over 8 steps, after 8 in which caches learn what comes again. 2.5 s where `largest` is 480 MiB. Before each size
// `together` is called, which returns when all processes that share the machine have called it; `threads` threads share
// the memory.
std::vector<ReuseSample> reuse_sweep(Bytes largest, int threads, const std::function<void()>& together);

// Tensors of 4 MiB a thread, out of `largest` bytes, and 72 MiB a thread at least: each is touched twice, then another
// once, some milliseconds pass, up to 128, in which this process computes without memory, and it is read; and, first,
// such as were not touched since the memory was taken. Medians of 9; 2.5 s. `together` is called before each age.
std::vector<LastingSample> lasting_sweep(Bytes largest, int threads, const std::function<void()>& together);

}  // namespace sibyl

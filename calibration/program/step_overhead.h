// The host time per operation that no kernel sample contains: the trainer's interpreter, and autograd's work around a
// node beyond the node itself (accumulating parameters' gradients).
#pragma once

#include "base/result.h"
#include "calibration/program/ranks.h"
#include "calibration/program/session.h"
#include "profiler/torch/timing.h"

namespace sibyl {

// A chain of additions so small that all of a step is overhead runs through the trainer's own Replica; what its kernels
// take, timed in the same warm caches, is subtracted. Kept if the session has it.
Result<void> measure_step_overhead(const Ranks& ranks, Session& session, const TimingOptions& options);

}  // namespace sibyl

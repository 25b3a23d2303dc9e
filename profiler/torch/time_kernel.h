// Times kernels as training runs them: ATen through aten::run_operation with autograd recording, on operands that are
// as cold or warm in the caches as a step leaves them.
//
// forward: the operation, recording for backward. backward: the gradients of exactly the key's masked operands, through
// autograd's engine, less the engine's start-up (timed beside it on a graph without nodes): so what remains is the node
// or nodes of this operation, with the engine's work for each. optimizer_update: one parameter's update by
// aten::Optimizer.
//
// Before the clock starts, the operand that the previous operation of a step would just have written (the first
// activation in forward, the output's gradient in backward) is made as that would (JustMade); all others have left the
// cache since, with a lap that is larger. Without laps, and on GPUs, it is written again in its place.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "profiler/kernel_table.h"
#include "profiler/torch/timing.h"

namespace sibyl {

// All in turn, a sample of each. An operation that ATen refuses, or that has no backward though the key asks for it, is
// an Error naming the key, and the others are timed.
std::vector<Result<KernelSample>> time_kernels(std::span<const KernelKey> keys, const TimingOptions& options);
Result<KernelSample> time_kernel(const KernelKey& key, const TimingOptions& options);

}  // namespace sibyl

// Times one kernel as training runs it: ATen through aten::run_operation with autograd recording, on operands that are
// as cold or warm in the caches as a step leaves them.
//
// forward: the operation, recording for backward. backward: the gradients of exactly the key's masked operands, through
// autograd's engine, less the engine's start-up (timed beside it on a graph without nodes): so what remains is the node
// or nodes of this operation, with the engine's work for each. optimizer_update: one parameter's update by
// aten::Optimizer.
//
// Before the clock starts, the operand that the previous operation of a step would just have written (the first
// activation in forward, the output's gradient in backward) is written again; all others were last touched a whole lap
// ago.
#pragma once

#include "base/result.h"
#include "profiler/kernel_table.h"
#include "profiler/torch/timing.h"

namespace sibyl {

struct KernelTiming {
  KernelSample sample;
  Rotation rotation;  // what the sample was taken with
};

// An operation that ATen refuses, or that has no backward though the key asks for it, is an Error naming the key.
Result<KernelTiming> time_kernel(const KernelKey& key, const TimingOptions& options);

}  // namespace sibyl

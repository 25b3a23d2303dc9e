// The part of a kernel's key that its time depends on.
//
// Keys that differ only in what does not change the work (an epsilon, attention's scale, how tokens are grouped into
// leading dimensions of a linear layer, the shape of an elementwise operand) are the same kernel; cost_key() maps them
// to one representative, so that a sample of one answers for all. Families and features are taken from representatives
// too.
#pragma once

#include "profiler/kernel_key.h"

namespace sibyl::interpolation {

KernelKey cost_key(KernelKey key);

// A backward pass of this operation runs one kernel for each gradient it computes, so its time is their sum:
// convolution, linear, matmul. Fused passes (attention, normalization) are not.
bool one_kernel_per_gradient(const Attributes& attributes);

// The same backward pass, computing only the gradients of `mask`.
KernelKey with_gradients(KernelKey key, std::uint32_t mask);

}  // namespace sibyl::interpolation

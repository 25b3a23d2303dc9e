// Elementwise operations in a row as one kernel: what torch.compile, XLA and JAX make of them, and what Transformer
// Engine and Megatron-LM write by hand (rotary positions, SwiGLU, bias, dropout and addition).
//
// A group is the operation whose result others read and all before it whose results nobody else does. Its kernel reads
// what comes from outside once and writes one result; backward it reads the result's gradient and, unless the group
// only adds, what came from outside, and writes the gradients of that; but no more than its operations move apart
// (behind a ReLU the two gradients of a sum are one tensor). Both are priced as a copy of as many bytes.
// For backward it keeps what comes from outside and makes again what lies between, where that is less than what its
// operations keep by themselves: SwiGLU keeps the gate and the other product, not the gate's SiLU.
#pragma once

#include <string_view>

#include "oracle/plan/plan.h"

namespace sibyl {

// The program with every group's last operation marked as its kernel and the others as launching none.
Stage with_fused_pointwise(const Stage& stage);

// Is an operation of that family in such a group, of one more beside it at least? Empty: of any family.
bool has_fusible_pointwise(const Stage& stage, std::string_view family = {});

}  // namespace sibyl

// Transpositions around fused attention. PyTorch permutes views; a copy is made where a kernel wants its operand dense.
// Fused kernels (FlashAttention's, the memory-efficient one, cuDNN's) take queries, keys and values as projections
// left them, tokens before heads, write their result so, and elementwise operations between keep that order. Products
// of attention that is taken apart want dense operands.
#pragma once

#include "oracle/plan/plan.h"

namespace sibyl {

// The program with such transpositions marked (Compute::strided).
Stage with_strided_attention(const Stage& stage);

}  // namespace sibyl

// What training does with one operation: the work of its passes and what autograd keeps between them, as PyTorch does.
//
// Work counts a multiply-add as 2 FLOPs and the least memory traffic: every operand read once, every result written
// once, and what is summed over broadcast extents once each way. `gradients` is a bit mask over the operands: bit i
// set = the backward pass computes the gradient of input i (a first layer's convolution computes its weight's but not
// its input's).
#pragma once

#include <cstdint>

#include "models/signature.h"
#include "models/training/rule.h"

namespace sibyl {

TrainingRule training_rule(const Signature& signature, std::uint32_t gradients, Backend backend);

}  // namespace sibyl

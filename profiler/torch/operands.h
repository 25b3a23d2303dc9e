// Operands for a kernel, made from its signature alone: right types, ids within bounds, weights as leaf parameters.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "models/signature.h"

namespace sibyl {

enum class OperandRole {
  absent,      // an optional operand that is not there
  activation,  // what an earlier operation computed
  weight,      // a trained parameter
  buffer,      // kept but not trained: running statistics, masks
  ids,         // integers below a bound
  condition,   // booleans
};

OperandRole role_of(const Signature& signature, std::size_t operand);

// The integers an operand of role `ids` may hold: [0, bound).
std::int64_t id_bound(const Signature& signature, std::size_t operand);

// `gradients`: the operands that require a gradient, as KernelKey's mask. All are leaves, so that autograd stops at
// them as it stops at the edge of the operation in a step.
std::vector<torch::Tensor> make_operands(const Signature& signature, std::uint32_t gradients);

// The operands that carry a gradient wherever they may: what autograd records in the forward pass of a step.
std::uint32_t differentiable_operands(const Signature& signature);

}  // namespace sibyl

// Which element type an operation computes in under a precision, as torch.autocast decides: matrix work in the lower
// precision, sums and losses in f32, everything else in the widest type of its operands.
#pragma once

#include <vector>

#include "models/operations/operations.h"
#include "oracle/plan/plan.h"
#include "oracle/strategy.h"

namespace sibyl {

// `compute` is of `stage`; `operands`: the storage types that its floating operands have which are activations.
DType operation_type(const Stage& stage, const Compute& compute, const std::vector<DType>& operands,
                     Precision precision);
// The same of a model held in two bytes: all of it runs in them but losses, whose logits are cast.
DType half_model_type(const Attributes& attributes, Precision precision);
// Is the strategy's model one?
bool has_half_weights(const Strategy& strategy);
// And are its gradients summed in four?
bool sums_in_full(const Strategy& strategy);

// What a computed type takes its operands in: tf32 computes on f32.
inline DType storage_type(DType type) { return type == DType::tf32 ? DType::f32 : type; }
// What it leaves: products of f8 are bf16.
inline DType result_type(DType type) { return type == DType::f8e4m3 ? DType::bf16 : storage_type(type); }

// The program with its operations in these types, and casts between them. An operand is cast once and reused (autocast
// keeps its casts of weights for the step); parameters stay what they are, the masters.
// `fp32_gradients`: those of two-byte parameters are summed in f32.
Stage with_precision(const Stage& stage, Precision precision, bool half_weights = false, bool fp32_gradients = false);

}  // namespace sibyl

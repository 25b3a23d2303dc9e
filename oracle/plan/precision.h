// Which element type an operation computes in under a precision, as torch.autocast decides: matrix work in the lower
// precision, sums and losses in f32, everything else in the widest type of its operands.
#pragma once

#include <vector>

#include "models/operations/operations.h"
#include "oracle/plan/plan.h"
#include "oracle/strategy.h"

namespace sibyl {

// `operands`: the storage types of the floating operands that are activations.
DType operation_type(const Attributes& attributes, const std::vector<DType>& operands, Precision precision);

// What a computed type is stored as: tf32 computes on f32.
inline DType storage_type(DType type) { return type == DType::tf32 ? DType::f32 : type; }

// The program with its operations in these types, and casts between them. An operand is cast once and reused (autocast
// keeps its casts of weights for the step); parameters stay what they are, the masters.
Stage with_precision(const Stage& stage, Precision precision);

}  // namespace sibyl

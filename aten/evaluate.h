// Operations as they run when a trained model is used: without dropout, batch-norm by its running statistics. All else
// is as in training.
#pragma once

#include <torch/types.h>
#include <vector>

#include "models/operations/operations.h"
#include "models/shape.h"

namespace sibyl::aten {

// Operands and results as run_operation.h says.
std::vector<torch::Tensor> run_for_evaluation(const Attributes& attributes, const std::vector<torch::Tensor>& inputs,
                                              const std::vector<Shape>& output_shapes);

}  // namespace sibyl::aten

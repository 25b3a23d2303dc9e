// How each Operation runs in ATen. Used by the trainer, which trains with it, and by the profiler, which times it: so
// what is timed is what is trained. Built on autograd: with grad mode on, backward is the framework's own.
#pragma once

#include <torch/types.h>
#include <vector>

#include "base/result.h"
#include "models/operations/operations.h"
#include "models/signature.h"

namespace sibyl::aten {

// Runs `attributes` on `inputs` (an undefined tensor where an optional operand is absent). `output_shapes` are needed
// by operations whose result shape is not in their attributes (Reshape, Expand, Resize, Pool global…).
std::vector<torch::Tensor> run_operation(const Attributes& attributes, const std::vector<torch::Tensor>& inputs,
                                         const std::vector<Shape>& output_shapes);

}  // namespace sibyl::aten

// The tables of operators, one per file of this folder.
#pragma once

#include <span>

#include "models/onnx/lowering.h"

namespace sibyl::onnx_import {

std::span<const Operator> convolution_operators();
std::span<const Operator> matrix_operators();
std::span<const Operator> normalization_operators();
std::span<const Operator> pooling_operators();
std::span<const Operator> unary_operators();
std::span<const Operator> binary_operators();
std::span<const Operator> reduction_operators();
std::span<const Operator> view_operators();
std::span<const Operator> indexing_operators();
std::span<const Operator> constant_operators();
std::span<const Operator> resampling_operators();
std::span<const Operator> attention_operators();
std::span<const Operator> expert_operators();
std::span<const Operator> random_operators();
std::span<const Operator> loss_operators();

}  // namespace sibyl::onnx_import

// Einsum of one or two operands without ellipsis or repeated labels: transposes around one matrix product.
#pragma once

#include "models/onnx/lowering.h"

namespace sibyl::onnx_import {

Result<Lowering> einsum(const Node& node);

}  // namespace sibyl::onnx_import

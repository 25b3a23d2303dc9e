// The order in which a graph's nodes can run.
#pragma once

#include <set>
#include <vector>

#include "models/onnx/document.h"

namespace sibyl::onnx_import {

// Indices of `nodes`, in the file's order where that is possible. Errors: a name produced twice (`given`: what inputs
// and initializers produce), a cycle.
Result<std::vector<std::size_t>> execution_order(const std::vector<NodeData>& nodes,
                                                 const std::set<std::string>& given);

}  // namespace sibyl::onnx_import

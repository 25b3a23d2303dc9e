// A head that is tied to the embedding's table: torch's inference export computes the transposed table once and stores
// it as a matrix of its own, without saying whose it is.
//
// Where a table of embeddings and a matrix of the transposed shape both exist, a few elements of each are compared, so
// a file of any size costs the same; if they agree, the matrix becomes Transpose(table), as a training export has it.
// They lie in the model's file or, of a model of 2 GiB and more, in files beside it, of which nothing else is ever
// read. Where values are missing, or all alike, both stay.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/onnx/document.h"
#include "models/onnx/wire.h"

namespace sibyl::onnx_import {

// `folder`: the model's; none: there are no files beside it. A sentence for each matrix that may be tied, by its shape
// and its name, but whose values or whose table's are missing.
std::vector<std::string> tie_transposed_tables(GraphData& graph, const Payloads& payloads,
                                               const std::optional<std::filesystem::path>& folder);

}  // namespace sibyl::onnx_import

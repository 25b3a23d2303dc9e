// A head that is tied to the embedding's table: torch's inference export computes the transposed table once and stores
// it as a matrix of its own, without saying whose it is.
//
// Where a table of embeddings and a matrix of the transposed shape both lie in the file, a few elements of each are
// compared, so a file of any size costs the same; if they agree, the matrix becomes Transpose(table), as a training
// export has it. Where values lie outside the file, which is never opened, or are all alike, both stay.
#pragma once

#include "models/onnx/document.h"
#include "models/onnx/wire.h"

namespace sibyl::onnx_import {

void tie_transposed_tables(GraphData& graph, const Payloads& payloads);

}  // namespace sibyl::onnx_import

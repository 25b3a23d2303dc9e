// Masks among a file's weights: an export that computes what it can stores a mask as a float initializer, and says of
// neither what it is. Elements do (models/mask.h).
#pragma once

#include "models/onnx/document.h"
#include "models/onnx/wire.h"

namespace sibyl::onnx_import {

// Sets TensorData::mask of those that are. Larger ones, whose elements TensorData lacks, are looked at in the file.
void mark_masks(GraphData& graph, const Payloads& payloads);

}  // namespace sibyl::onnx_import

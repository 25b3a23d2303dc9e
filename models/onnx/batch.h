// Which extents of a model's inputs are the batch, and the numbers that all their extents get.
//
// The batch is the symbol whose name says so (batch, batch_size, N, bs), else the symbol at axis 0 of the first input;
// so is every other symbol that stands at axis 0 only. Where axis 0 of the first input is a number, the export baked
// the batch in: that number, on axis 0 of every input that has it. Other symbols are bound by options.dims, by the
// model's metadata "sibyl.dim.NAME", or are an error. An open extent without a name is called INPUT.AXIS.
#pragma once

#include "models/onnx/document.h"
#include "models/onnx/import.h"
#include "models/onnx/node.h"

namespace sibyl::onnx_import {

struct InputShapes {
  const ValueData* input = nullptr;
  std::array<Shape, 2> at;  // by side
};

struct Binding {
  std::vector<InputShapes> inputs;  // those that are not initializers
  Batches batches{1, 2};
  std::size_t wanted_side = 0;  // whose shapes the graph gets
  bool baked = false;
  double capacity_factor = 1.0;  // as asked for
  Cancelled cancelled = {};      // likewise
  [[nodiscard]] std::int64_t batch() const { return batches[wanted_side]; }
};

// `reference`: the batch of side 0 where the model leaves it open.
Result<Binding> bind_inputs(const ModelData& model, const ImportOptions& options, std::int64_t reference);

// What bind_inputs() asks options.dims for, by name.
Result<std::vector<OpenDimension>> open_dimensions_of(const ModelData& model);

}  // namespace sibyl::onnx_import

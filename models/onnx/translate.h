// Walks a model's nodes at two batches in lockstep and writes down the Graph of elementary operations.
#pragma once

#include "models/onnx/batch.h"
#include "models/onnx/document.h"
#include "models/onnx/import.h"

namespace sibyl::onnx_import {

struct Translation {
  Graph graph;  // finished
  std::vector<Unsupported> unsupported;
  std::int64_t unseen = 0;  // as Import's
  // A guess about where the batch is baked in is likely wrong: a result of the model, or one on the way, does not grow
  // with the batch as it should.
  bool doubtful = false;
};

// An Error found only at the other batch: the node forbids it. `forbids_batch` tells such errors from the rest, of
// which one is that Binding::cancelled has ended it.
struct TranslationError {
  Error error;
  bool forbids_batch = false;
  std::string op_type;
};

tl::expected<Translation, TranslationError> translate(const ModelData& model, const Binding& binding, Choices& choices);

}  // namespace sibyl::onnx_import

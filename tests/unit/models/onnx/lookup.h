// Looking at imported graphs in tests.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "models/onnx/import.h"
#include "tests/unit/models/onnx/model_builder.h"

namespace sibyl {

inline Result<Import> import(const ModelBuilder& builder, ImportOptions options = {}) {
  if (options.loss == LossKind::automatic) options.loss = LossKind::none;
  return inspect_onnx_bytes(builder.bytes(), "test.onnx", options);
}

inline const Tensor* find_tensor(const Graph& graph, const std::string& name) {
  for (const Tensor& tensor : graph.tensors())
    if (tensor.name == name) return &tensor;
  return nullptr;
}

// The shape of the model's first result.
inline Shape result_shape(const Result<Import>& import) {
  if (!import) {
    ADD_FAILURE() << to_string(import.error());
    return {};
  }
  for (const Unsupported& entry : import->unsupported)
    ADD_FAILURE() << entry.node << " " << entry.op_type << ": " << entry.reason;
  if (import->graph.outputs.empty()) {
    ADD_FAILURE() << "no outputs";
    return {};
  }
  return import->graph[import->graph.outputs.front()].shape;
}

template <class Kind>
int count(const Graph& graph) {
  int found = 0;
  for (const Operation& operation : graph.operations())
    found += std::holds_alternative<Kind>(operation.attributes) ? 1 : 0;
  return found;
}

template <class Kind>
const Kind* first(const Graph& graph) {
  for (const Operation& operation : graph.operations())
    if (const Kind* found = std::get_if<Kind>(&operation.attributes)) return found;
  return nullptr;
}

}  // namespace sibyl

// A small mixture of experts, as its ONNX file is read: rotary tables and a mask, which pipeline stages make for
// themselves, routing and grouped linear layers.
#pragma once

#include <map>

#include "models/onnx/import.h"
#include "models/zoo/families.h"

namespace sibyl::test {

// Samples of 16 tokens, 2 of 4 experts for each of them. Batch 4.
inline const Graph& mixture_of_experts(std::int64_t layers) {
  static std::map<std::int64_t, Graph> graphs;
  if (const auto known = graphs.find(layers); known != graphs.end()) return known->second;
  zoo::LlamaOptions model{layers, 48, 4, 2, 96};
  model.seq = 16, model.vocabulary = 96;
  model.experts = {.count = 4, .chosen = 2, .width = 48};
  zoo::Builder builder("mixture");
  zoo::llama(builder, model);
  ImportOptions options;
  options.batch = 4;
  return graphs[layers] = inspect_onnx_bytes(builder.bytes(), "mixture", options)->graph;
}

}  // namespace sibyl::test

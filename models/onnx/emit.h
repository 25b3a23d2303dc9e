// Writes lowered nodes into a Graph: tensors get their batch axis, constants and weights appear when first used.
//
// Floats of two bytes or one become f32, and casts between them do nothing: so a file may store its weights, but
// training keeps them in f32, and what it computes in is the strategy's.
#pragma once

#include <optional>

#include "models/graph.h"
#include "models/onnx/lowering.h"

namespace sibyl::onnx_import {

class Emitter {
 public:
  Emitter(Batches batches, std::size_t side) : batches_(batches), side_(side) {}

  // A tensor for a value that is not in the graph yet.
  TensorId add_input(const Value& value);
  // `lowered`: the node on both sides. `outputs` get their tensors. Where it cannot be written down, why.
  std::string emit(const std::string& name, const std::array<Lowering, 2>& lowered, const std::vector<Value*>& inputs,
                   const std::vector<Value*>& outputs);

  Graph graph;
  std::optional<DType> stored;  // what weights are stored in, where that is less

 private:
  TensorId add(const std::string& name, const std::array<Fact, 2>& at, TensorKind kind);
  struct Node;  // what is being written
  TensorId tensor_of(Value& value, bool statistic);
  TensorId tensor_of(const Operand& operand, Node& node);
  void write(const Step& step, std::string name, Node& node);
  void bound_indices(TensorId ids, std::int64_t rows);

  Batches batches_;
  std::size_t side_;
  std::vector<TensorId> first_operand_;  // of views and casts, by tensor: where ids come from
};

// Empty: the value's extents keep their meaning at any batch.
std::string growth_problem(const std::array<Fact, 2>& at, const Batches& batches);

}  // namespace sibyl::onnx_import

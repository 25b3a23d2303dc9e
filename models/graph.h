// A Graph is a model as a framework trains it: operations in an order they can run in, the tensors between them, and
// which tensors are parameters. Weights' values are never held; only shapes are.
//
// Built by the ONNX importer and the canonical rewrites; immutable for everyone else.
//
// The batch: every shape holds for `batch()` samples. A tensor that grows with the batch names the axis in `batch_axis`
// (its extent there is a multiple of batch(): tokens flattened as B*S keep their axis). `local_shape(t, b)` gives the shape for b samples.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "models/dtype.h"
#include "models/operations/operations.h"
#include "models/shape.h"
#include "models/signature.h"

namespace sibyl {

using TensorId = Id<struct TensorTag>;
using OperationId = Id<struct OperationTag>;

enum class TensorKind {
  input,       // fed anew each step: samples, targets
  parameter,   // trained: has a gradient and optimizer state
  buffer,      // kept between steps but not trained: running statistics, masks, constant tables
  activation,  // computed in the step
};

struct Tensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  TensorKind kind = TensorKind::activation;
  std::optional<std::size_t> batch_axis;
  // Small integer or scalar constants (Gather indices, scalars of a Binary) keep their values; others are empty.
  std::vector<double> values;
  // Size of the integers a target or id input may take: classes or vocabulary; 0 where it does not apply.
  std::int64_t index_bound = 0;
};

struct Operation {
  std::string name;        // the ONNX node's name, or its first output's
  Attributes attributes;
  std::vector<TensorId> inputs;   // an absent optional operand is an invalid id
  std::vector<TensorId> outputs;
  std::vector<std::string> fused;  // the ONNX nodes this stands for, when more than one
};

// Parameters that reach this output alone, which no loss is attached to: training never sees them (models/untrained.h).
struct UntrainedOutput {
  std::string output;
  std::int64_t parameters = 0, elements = 0;
  bool operator==(const UntrainedOutput&) const = default;
};

class Graph {
 public:
  using Dependencies = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

  std::string name;
  // The scalar the training step minimises; set once a loss is attached.
  TensorId loss;
  // What the model returns, in the file's order. Empty: every tensor that is produced and that nothing consumes.
  std::vector<TensorId> outputs;
  // What the file does not say and is taken for granted, a sentence each: reports repeat it.
  std::vector<std::string> assumed;
  std::vector<UntrainedOutput> untrained;  // what was left out when the loss was attached

  TensorId add(Tensor tensor);
  OperationId add(Operation operation);  // any order; finish() sorts
  // Checks (every operand is produced or is a source; one producer each; acyclic), sorts operations topologically
  // (ties by order of addition), and builds consumers. Must be called once after the last add.
  Result<void> finish(std::int64_t batch);

  [[nodiscard]] std::int64_t batch() const { return batch_; }
  [[nodiscard]] std::span<const Tensor> tensors() const { return tensors_; }
  [[nodiscard]] std::span<const Operation> operations() const { return operations_; }
  [[nodiscard]] const Tensor& operator[](TensorId id) const { return tensors_[id.index()]; }
  [[nodiscard]] const Operation& operator[](OperationId id) const { return operations_[id.index()]; }
  [[nodiscard]] Tensor& at(TensorId id) { return tensors_[id.index()]; }

  [[nodiscard]] OperationId producer(TensorId id) const { return producers_[id.index()]; }  // invalid for sources
  [[nodiscard]] std::span<const OperationId> consumers(TensorId id) const { return consumers_[id.index()]; }
  // Vertex i is operation i; an edge for every tensor that flows from one to another.
  [[nodiscard]] const Dependencies& dependencies() const { return dependencies_; }

  // Operations whose result (transitively) depends on a parameter or on an input that needs one: these have a backward.
  // requires_gradient(t): t is a trained parameter, or an activation computed from one.
  [[nodiscard]] bool requires_gradient(TensorId id) const { return requires_gradient_[id.index()]; }

  [[nodiscard]] std::int64_t parameter_count() const;  // elements of all parameters

 private:
  std::vector<Tensor> tensors_;
  std::vector<Operation> operations_;
  std::vector<OperationId> producers_;
  std::vector<std::vector<OperationId>> consumers_;
  std::vector<bool> requires_gradient_;
  Dependencies dependencies_;
  std::int64_t batch_ = 1;
};

Shape local_shape(const Graph& graph, TensorId tensor, std::int64_t batch);
// The signature of an operation on `batch` samples computing in `dtype`. Absent operands are left out of `inputs`
// only at the end; in the middle they appear as the shape {0}.
Signature signature(const Graph& graph, OperationId operation, std::int64_t batch, DType dtype);

}  // namespace sibyl

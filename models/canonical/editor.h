// A graph while it is being rewritten: operations can be replaced, inserted and left to die. Operations keep their
// place in the order, so what comes out runs in the order of the file. Ids are stable until finish().
#pragma once

#include <span>
#include <vector>

#include "models/graph.h"

namespace sibyl {

class Editor {
 public:
  explicit Editor(const Graph& graph);

  std::vector<TensorId> outputs;  // what the graph returns
  TensorId loss;
  std::vector<std::string> assumed;  // as Graph's

  [[nodiscard]] const Tensor& operator[](TensorId id) const { return tensors_[id.index()]; }
  [[nodiscard]] const Operation& operator[](OperationId id) const { return operations_[id.index()]; }
  [[nodiscard]] Tensor& at(TensorId id) { return tensors_[id.index()]; }
  [[nodiscard]] std::size_t tensor_count() const { return tensors_.size(); }
  [[nodiscard]] std::int64_t batch() const { return batch_; }

  [[nodiscard]] std::vector<OperationId> order() const;  // the live operations, each after its operands' producers
  [[nodiscard]] bool alive(OperationId id) const { return alive_[id.index()]; }
  [[nodiscard]] OperationId producer(TensorId id) const;  // invalid for sources and absent operands
  [[nodiscard]] std::span<const OperationId> consumers(TensorId id) const { return consumers_[id.index()]; }
  [[nodiscard]] bool is_output(TensorId id) const;
  // The one operation that uses the tensor, where there is exactly one and the graph does not return it.
  [[nodiscard]] OperationId sole_consumer(TensorId id) const;

  // The attributes of the tensor's producer if it is an Op; else null.
  template <class Op>
  [[nodiscard]] const Op* produced_by(TensorId id) const {
    const OperationId op = producer(id);
    return op.valid() ? std::get_if<Op>(&operations_[op.index()].attributes) : nullptr;
  }
  // The i-th operand of the tensor's producer.
  [[nodiscard]] TensorId operand(TensorId id, std::size_t i) const {
    return operations_[producer(id).index()].inputs[i];
  }

  TensorId add(Tensor tensor);
  OperationId append(Operation operation);  // after all others
  OperationId insert_before(OperationId place, Operation operation);
  // A tensor like `like` under another name and shape, made by `attributes` from `inputs` just before `place`.
  TensorId insert_before(OperationId place, Attributes attributes, std::vector<TensorId> inputs, Tensor result);

  // Puts (attributes, inputs) in the place of `root`, whose results it takes over, and removes `absorbed`. Does nothing
  // and returns false if anything outside uses a value that would vanish.
  bool fuse(OperationId root, std::vector<OperationId> absorbed, Attributes attributes, std::vector<TensorId> inputs);
  void rename(OperationId id, std::string name);
  // After fuse(): the names of what was fused belong to `to`, not to `from`.
  void hand_over_fused(OperationId from, OperationId to);
  // Everything that used `from` uses `to`; so do the graph's outputs.
  void redirect(TensorId from, TensorId to);
  // Removes operations whose results nothing uses: to a pattern they would look like a second use of a value inside it.
  void remove_unused();

  // Without operations that no output needs and tensors that no operation uses.
  Result<Graph> finish() const;

 private:
  OperationId add(Operation operation, double place);
  void link(OperationId id);
  void unlink(OperationId id);

  std::string name_;
  std::int64_t batch_;
  std::vector<Tensor> tensors_;
  std::vector<Operation> operations_;
  std::vector<bool> alive_;
  std::vector<double> place_;
  std::vector<OperationId> producers_;
  std::vector<std::vector<OperationId>> consumers_;
};

}  // namespace sibyl

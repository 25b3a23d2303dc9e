// One rank's copy of a stage: its tensors, and the interpreter of its forward program.
//
// Every activation is dropped as soon as its last forward consumer has run, so that from then on only autograd keeps
// it, and only where backward needs it: the peak is the one that oracle/memory computes.
#pragma once

#include <torch/types.h>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "oracle/plan/plan.h"

namespace sibyl::trainer {

class OperationSpans;

class Replica {
 public:
  // Fails where the stage holds an exchange between operations, or no loss. The graph and the stage must outlive it.
  static Result<Replica> create(const Graph& graph, const Stage& stage, std::uint64_t seed);

  // Runs the forward program on what lies in the inputs; the result is the scalar loss, its graph recorded. With
  // `spans` each operation is timed.
  at::Tensor forward(OperationSpans* spans = nullptr);
  // The same as when a model is used: no dropout, batch-norm by its running statistics, no graph.
  // The result is the first operand of the loss: logits or predictions.
  at::Tensor predict();

  [[nodiscard]] const Graph& graph() const { return *graph_; }
  [[nodiscard]] const Stage& stage() const { return *stage_; }
  [[nodiscard]] at::Tensor& operator[](LocalTensorId id) { return tensors_[id.index()]; }
  [[nodiscard]] const std::vector<LocalTensorId>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<LocalTensorId>& buffers() const { return buffers_; }
  [[nodiscard]] const std::vector<LocalTensorId>& inputs() const { return inputs_; }
  [[nodiscard]] const Compute& loss() const { return std::get<Compute>(stage_->steps[loss_step_]); }

 private:
  Replica(const Graph& graph, const Stage& stage);
  void find_last_uses();
  std::vector<at::Tensor> operands(const Compute& compute) const;
  void run_step(std::size_t index, bool training);
  void keep(const Compute& compute, std::vector<at::Tensor> results);
  void drop_after(std::size_t step);

  const Graph* graph_;
  const Stage* stage_;
  std::vector<at::Tensor> tensors_;  // by LocalTensorId; activations come and go
  std::vector<LocalTensorId> parameters_, buffers_, inputs_;
  std::vector<std::vector<LocalTensorId>> dropped_after_;  // by step
  std::size_t loss_step_ = 0;
};

}  // namespace sibyl::trainer

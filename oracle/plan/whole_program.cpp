#include "oracle/plan/whole_program.h"

#include <algorithm>

namespace sibyl {
namespace {

// Tensors that the loss depends on: only these get gradients.
std::vector<bool> reaches_loss(const Graph& graph) {
  std::vector<bool> reached(graph.tensors().size(), false);
  if (!graph.loss.valid()) return reached;
  reached[graph.loss.index()] = true;
  const auto operations = graph.operations();
  for (auto op = operations.rbegin(); op != operations.rend(); ++op) {
    const bool on_path = std::any_of(op->outputs.begin(), op->outputs.end(),
                                     [&](TensorId t) { return t.valid() && reached[t.index()]; });
    if (!on_path) continue;
    for (const TensorId in : op->inputs)
      if (in.valid()) reached[in.index()] = true;
  }
  return reached;
}

class Builder {
 public:
  Builder(const Graph& graph, std::int64_t batch)
      : graph_(graph), batch_(batch), reached_(reaches_loss(graph)), local_(graph.tensors().size()) {}

  Stage build() {
    for (std::size_t i = 0; i < graph_.operations().size(); ++i) add_operation(OperationId{i});
    return std::move(stage_);
  }

 private:
  LocalTensorId local(TensorId id) {
    LocalTensorId& known = local_[id.index()];
    if (known.valid()) return known;
    const Tensor& tensor = graph_[id];
    stage_.tensors.push_back({id, local_shape(graph_, id, batch_), tensor.dtype, tensor.kind,
                              graph_.requires_gradient(id) && reached_[id.index()]});
    if (tensor.kind == TensorKind::input) stage_.tensors.back().samples = tensor.batch_axis;
    return known = LocalTensorId{stage_.tensors.size() - 1};
  }

  void add_operation(OperationId id) {
    const Operation& operation = graph_[id];
    Compute compute{id, operation.attributes, {}, {}, DType::f32, 0};
    for (const TensorId in : operation.inputs) compute.inputs.push_back(in.valid() ? local(in) : LocalTensorId{});
    bool backward = false;
    for (const TensorId out : operation.outputs) {
      if (!out.valid()) continue;
      compute.outputs.push_back(local(out));
      backward = backward || stage_[compute.outputs.back()].requires_gradient;
    }
    for (std::size_t i = 0; backward && i < compute.inputs.size(); ++i)
      if (compute.inputs[i].valid() && stage_[compute.inputs[i]].requires_gradient) compute.gradients |= 1U << i;
    stage_.steps.push_back(std::move(compute));
  }

  const Graph& graph_;
  std::int64_t batch_;
  std::vector<bool> reached_;
  std::vector<LocalTensorId> local_;  // by TensorId
  Stage stage_;
};

}  // namespace

Stage whole_program(const Graph& graph, std::int64_t micro_batch) { return Builder(graph, micro_batch).build(); }

}  // namespace sibyl

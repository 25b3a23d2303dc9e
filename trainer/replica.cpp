#include "trainer/replica.h"

#include "aten/dtype.h"
#include "aten/evaluate.h"
#include "aten/run_operation.h"
#include "trainer/initialize.h"
#include "trainer/operation_spans.h"

namespace sibyl::trainer {

Replica::Replica(const Graph& graph, const Stage& stage)
    : graph_(&graph), stage_(&stage), tensors_(stage.tensors.size()), dropped_after_(stage.steps.size()) {}

Result<Replica> Replica::create(const Graph& graph, const Stage& stage, std::uint64_t seed) {
  Replica replica(graph, stage);
  bool has_loss = false;
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&stage.steps[i]);
    if (!compute)
      return fail("this plan splits the model's operations over ranks; only data-parallel plans can be run",
                  "--parallel", "use data=P");
    for (const LocalTensorId out : compute->outputs)
      if (out.valid() && stage[out].origin == graph.loss) replica.loss_step_ = i, has_loss = true;
  }
  if (!has_loss) return fail("the plan computes no loss", graph.name);
  for (std::size_t i = 0; i < stage.tensors.size(); ++i) {
    const LocalTensorId id{i};
    switch (stage[id].kind) {
      case TensorKind::activation: break;
      case TensorKind::parameter:
        replica.parameters_.push_back(id);
        replica[id] = initial_parameter(graph, stage, id, seed);
        break;
      case TensorKind::buffer:
        replica.buffers_.push_back(id);
        replica[id] = initial_buffer(graph, stage, id);
        break;
      case TensorKind::input:
        replica.inputs_.push_back(id);
        replica[id] = at::zeros(stage[id].shape, at::TensorOptions().dtype(aten::scalar_type(stage[id].dtype)));
        break;
    }
  }
  replica.find_last_uses();
  return replica;
}

void Replica::find_last_uses() {
  std::vector<std::size_t> last(stage_->tensors.size(), stage_->steps.size());
  for (std::size_t i = 0; i < stage_->steps.size(); ++i) {
    const auto& compute = std::get<Compute>(stage_->steps[i]);
    for (const auto* ids : {&compute.outputs, &compute.inputs})
      for (const LocalTensorId id : *ids)
        if (id.valid()) last[id.index()] = i;
  }
  for (std::size_t t = 0; t < last.size(); ++t) {
    const LocalTensor& tensor = stage_->tensors[t];
    if (tensor.kind == TensorKind::activation && last[t] < dropped_after_.size() && tensor.origin != graph_->loss)
      dropped_after_[last[t]].push_back(LocalTensorId{t});
  }
}

std::vector<at::Tensor> Replica::operands(const Compute& compute) const {
  std::vector<at::Tensor> result;
  result.reserve(compute.inputs.size());
  for (const LocalTensorId id : compute.inputs) result.push_back(id.valid() ? tensors_[id.index()] : at::Tensor());
  return result;
}

void Replica::keep(const Compute& compute, std::vector<at::Tensor> results) {
  for (std::size_t i = 0; i < compute.outputs.size(); ++i)
    if (compute.outputs[i].valid()) tensors_[compute.outputs[i].index()] = std::move(results.at(i));
}

void Replica::drop_after(std::size_t step) {
  for (const LocalTensorId id : dropped_after_[step]) tensors_[id.index()].reset();
}

void Replica::run_step(std::size_t index, bool training) {
  const auto& compute = std::get<Compute>(stage_->steps[index]);
  std::vector<Shape> shapes;
  for (const LocalTensorId out : compute.outputs) shapes.push_back(out.valid() ? (*stage_)[out].shape : Shape{});
  // Where the plan has no backward, autograd must not record one.
  const at::AutoGradMode mode(training && compute.gradients != 0);
  keep(compute, training ? aten::run_operation(compute.attributes, operands(compute), shapes)
                         : aten::run_for_evaluation(compute.attributes, operands(compute), shapes));
  drop_after(index);
}

at::Tensor Replica::forward(OperationSpans* spans) {
  for (std::size_t i = 0; i < stage_->steps.size(); ++i) {
    if (spans != nullptr) spans->begin_forward();
    run_step(i, true);
    if (spans != nullptr) spans->end_forward(i);
  }
  at::Tensor loss;
  std::swap(loss, tensors_[this->loss().outputs.front().index()]);
  return loss;
}

at::Tensor Replica::predict() {
  for (std::size_t i = 0; i < loss_step_; ++i) run_step(i, false);
  const at::Tensor result = tensors_[loss().inputs.front().index()];
  for (const LocalTensorId id : dropped_after_[loss_step_]) tensors_[id.index()].reset();
  return result;
}

}  // namespace sibyl::trainer

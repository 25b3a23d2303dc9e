#include "oracle/plan/plan.h"

#include <algorithm>

namespace sibyl {

std::vector<LocalTensorId> inputs_of(const Step& step) {
  if (const auto* compute = std::get_if<Compute>(&step)) return compute->inputs;
  return {std::get<Exchange>(step).input};
}

std::vector<LocalTensorId> outputs_of(const Step& step) {
  if (const auto* compute = std::get_if<Compute>(&step)) return compute->outputs;
  return {std::get<Exchange>(step).output};
}

Attributes attributes_of(const Step& step) {
  if (const auto* compute = std::get_if<Compute>(&step)) return compute->attributes;
  return Copy{};
}

int Stage::micro_batches() const {
  return static_cast<int>(std::count_if(schedule.begin(), schedule.end(),
                                        [](const Turn& turn) { return turn.kind == Turn::Kind::forward; }));
}

Signature signature(const Stage& stage, const Compute& compute) {
  Signature result{compute.attributes, {}, {}, compute.dtype};
  std::size_t last = compute.inputs.size();
  while (last > 0 && !compute.inputs[last - 1].valid()) --last;
  for (std::size_t i = 0; i < last; ++i)
    result.inputs.push_back(compute.inputs[i].valid() ? stage[compute.inputs[i]].shape : Shape{0});
  for (const LocalTensorId out : compute.outputs) result.outputs.push_back(stage[out].shape);
  return result;
}

void each_gradient(const Stage& stage, const Step& step, const std::function<void(LocalTensorId)>& visit) {
  if (const auto* exchange = std::get_if<Exchange>(&step)) {
    if (stage[exchange->input].requires_gradient) visit(exchange->input);
    return;
  }
  const auto& compute = std::get<Compute>(step);
  for (std::size_t i = 0; i < compute.inputs.size(); ++i)
    if (compute.gradients >> i & 1U) visit(compute.inputs[i]);
}

// Autograd runs the latest forward operation first; within one operation gradients arrive in operand order. A parameter
// used several times is complete when its first use's backward has run. Casts pass the gradient on to the master.
std::vector<LocalTensorId> gradient_order(const Stage& stage) {
  std::vector<LocalTensorId> order;
  std::vector<int> uses(stage.tensors.size(), 0);
  auto each_parameter = [&](const Step& step, auto&& visit) {
    each_gradient(stage, step, [&](LocalTensorId id) {
      if (stage[id].kind == TensorKind::parameter) visit(id);
    });
  };
  for (const Step& step : stage.steps) each_parameter(step, [&](LocalTensorId p) { ++uses[p.index()]; });
  for (auto step = stage.steps.rbegin(); step != stage.steps.rend(); ++step)
    each_parameter(*step, [&](LocalTensorId p) {
      if (--uses[p.index()] == 0) order.push_back(p);
    });
  return order;
}

}  // namespace sibyl

#include "oracle/plan/plan.h"

#include <algorithm>

#include "models/training/gradient_aliasing.h"
namespace sibyl {

std::vector<int> sync_group(const Mesh& mesh, const GradientSync& sync, int rank) {
  std::vector<int> group = mesh.group(rank, sync.axes);
  const int coordinates = mesh.size(MeshAxis::pipeline);
  if (!sync.stages.empty())
    std::erase_if(group, [&](int member) {
      const int at = mesh.coordinate(member, MeshAxis::pipeline);
      return std::none_of(sync.stages.begin(), sync.stages.end(), [&](int s) { return s % coordinates == at; });
    });
  return group;
}

namespace {

// Which of the copies the rank has a part of.
int copy_of(const Mesh& mesh, const GradientSync& sync, int rank) {
  const std::int64_t before = std::int64_t{mesh.coordinate(rank, MeshAxis::data)} * sync.copies;
  return static_cast<int>(before / mesh.size(MeshAxis::data));
}

}  // namespace

std::vector<int> shard_group(const Mesh& mesh, const GradientSync& sync, int rank) {
  std::vector<int> group = sync_group(mesh, sync, rank);
  std::erase_if(group, [&](int member) { return copy_of(mesh, sync, member) != copy_of(mesh, sync, rank); });
  return group;
}

std::vector<int> copies_group(const Mesh& mesh, const GradientSync& sync, int rank) {
  if (sync.copies == 1) return {rank};
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(sync.copies));
  for (const int member : sync_group(mesh, sync, rank))
    shares[static_cast<std::size_t>(copy_of(mesh, sync, member))].push_back(member);
  const std::vector<int>& own = shares[static_cast<std::size_t>(copy_of(mesh, sync, rank))];
  const auto place = std::ranges::find(own, rank) - own.begin();
  std::vector<int> group;
  for (const std::vector<int>& share : shares) group.push_back(share[static_cast<std::size_t>(place)]);
  return group;
}

std::span<const LocalTensorId> inputs_of(const Step& step) {
  if (const auto* compute = std::get_if<Compute>(&step)) return compute->inputs;
  return {&std::get<Exchange>(step).input, 1};
}

std::span<const LocalTensorId> outputs_of(const Step& step) {
  if (const auto* compute = std::get_if<Compute>(&step)) return compute->outputs;
  return {&std::get<Exchange>(step).output, 1};
}

Attributes attributes_of(const Step& step) {
  if (const auto* compute = std::get_if<Compute>(&step)) return compute->attributes;
  return Copy{};
}

std::vector<std::uint32_t> later_gradients(const Stage& stage) {
  std::vector<std::uint32_t> later(stage.steps.size(), 0);
  std::vector<bool> of_weights(stage.tensors.size(), false);
  for (std::size_t t = 0; t < stage.tensors.size(); ++t) of_weights[t] = stage.tensors[t].kind == TensorKind::parameter;
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&stage.steps[i]);
    if (!compute || compute->gradients == 0) continue;
    std::uint32_t weights = 0;
    for (std::size_t in = 0; in < compute->inputs.size(); ++in)
      if ((compute->gradients >> in & 1U) != 0 && of_weights[compute->inputs[in].index()]) weights |= 1U << in;
    const bool form = weights == compute->gradients && (std::holds_alternative<Cast>(compute->attributes) ||
                                                        std::holds_alternative<Reshape>(compute->attributes) ||
                                                        std::holds_alternative<Transpose>(compute->attributes));
    if (form || std::holds_alternative<Linear>(compute->attributes) ||
        std::holds_alternative<GroupedLinear>(compute->attributes) ||
        std::holds_alternative<Convolution>(compute->attributes))
      later[i] = weights;
    if (form)
      for (const LocalTensorId out : compute->outputs) of_weights[out.index()] = true;
  }
  return later;
}

bool splits_backward(const Stage& stage) {
  return std::any_of(stage.schedule.begin(), stage.schedule.end(),
                     [](const Turn& turn) { return turn.kind == Turn::Kind::backward_weight; });
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

namespace {

// No kernel of its own (with_precision.cpp), but a result beside what it reads; of a parameter it is what a library
// holds in the parameter's place.
bool makes_fp8(const Stage& stage, const Compute& compute) {
  if (!std::holds_alternative<Cast>(compute.attributes)) return false;
  const LocalTensor &from = stage[compute.inputs.front()], &to = stage[compute.outputs.front()];
  return from.kind != TensorKind::parameter && size_in_bytes(to.dtype) < std::min(2.0, size_in_bytes(from.dtype));
}

}  // namespace

TrainingRule rule_of(const Stage& stage, const Compute& compute, Backend backend) {
  TrainingRule rule = training_rule(signature(stage, compute), compute.gradients, backend);
  if (compute.strided && backend == Backend::cuda) {
    rule = {};
    rule.view = true;
  }
  const Compute::Kept& kept = compute.kept;
  std::erase_if(rule.saved, [&](const Saved& saved) {
    return (saved.what == Saved::What::input && saved.index < 32 && (kept.not_inputs >> saved.index & 1U) != 0) ||
           (saved.what == Saved::What::output && kept.not_output);
  });
  for (std::size_t in = 0; in < std::min<std::size_t>(compute.inputs.size(), 32); ++in)
    if ((kept.also_inputs >> in & 1U) != 0) rule.saved.push_back(rules::saved_input(in));
  rule.view = rule.view && !makes_fp8(stage, compute);
  return rule;
}

bool passes_gradient(const Stage& stage, const Compute& compute, std::size_t operand, Backend backend) {
  return (compute.strided && backend == Backend::cuda) || passes_gradient_through(signature(stage, compute), operand);
}

// Autograd runs the latest forward operation first; within one operation gradients arrive in operand order, but that of a
// linear layer's bias before its weight's, which has a transposition to pass. A parameter used several times is complete
// when its first use's backward has run. Casts pass the gradient on to the master.
std::vector<LocalTensorId> gradient_order(const Stage& stage) {
  std::vector<LocalTensorId> order;
  std::vector<int> uses(stage.tensors.size(), 0);
  auto each_parameter = [&](const Step& step, auto&& visit) {
    std::vector<LocalTensorId> parameters;
    each_gradient(stage, step, [&](LocalTensorId id) {
      if (stage[id].kind == TensorKind::parameter) parameters.push_back(id);
    });
    const auto* compute = std::get_if<Compute>(&step);
    if (compute && std::holds_alternative<Linear>(compute->attributes))
      std::reverse(parameters.begin(), parameters.end());
    for (const LocalTensorId id : parameters) visit(id);
  };
  for (const Step& step : stage.steps) each_parameter(step, [&](LocalTensorId p) { ++uses[p.index()]; });
  for (auto step = stage.steps.rbegin(); step != stage.steps.rend(); ++step)
    each_parameter(*step, [&](LocalTensorId p) {
      if (--uses[p.index()] == 0) order.push_back(p);
    });
  return order;
}

}  // namespace sibyl

#include "trainer/replica.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <utility>

#include "aten/device.h"
#include "aten/dtype.h"
#include "aten/evaluate.h"
#include "aten/run_operation.h"
#include "oracle/plan/recompute.h"
#include "trainer/emulated_device.h"
#include "trainer/exchange.h"
#include "trainer/initialize.h"
#include "trainer/offload_activations.h"
#include "trainer/operation_spans.h"
#include "trainer/random.h"
#include "trainer/recompute.h"
#include "trainer/ring_passing.h"

namespace sibyl::trainer {

Replica::Replica(const Graph& graph, const Stage& stage, const MeshGroups& groups, std::uint64_t seed,
                 EmulatedDevice* emulated)
    : graph_(&graph),
      stage_(&stage),
      groups_(&groups),
      emulated_(emulated),
      seed_(seed),
      pass_seed_(seed),
      later_masks_(splits_backward(stage) ? later_gradients(stage) : std::vector<std::uint32_t>{}),
      tensors_(stage.tensors.size()),
      reads_kept_(stage.steps.size(), false),
      dropped_after_(stage.steps.size()) {}

Result<Replica> Replica::create(const Graph& graph, const Stage& stage, const MeshGroups& groups, std::uint64_t seed,
                                EmulatedDevice* emulated) {
  Replica replica(graph, stage, groups, seed, emulated);
  if (!replica.find_loss() && stage.sends.empty()) return fail("the plan computes no loss", graph.name);
  for (std::size_t i = 0; i < stage.tensors.size(); ++i) {
    const LocalTensorId id{i};
    switch (stage[id].kind) {
      case TensorKind::activation: continue;
      case TensorKind::parameter: replica.parameters_.push_back(id); break;
      case TensorKind::buffer: replica.buffers_.push_back(id); break;
      case TensorKind::input: replica.inputs_.push_back(id); break;
    }
    replica[id] = replica.initial(id);
  }
  replica.find_last_uses();
  replica.find_kept_operands();
  return replica;
}

at::Tensor Replica::initial(LocalTensorId id) const {
  const LocalTensor& local = (*stage_)[id];
  if (emulated_ != nullptr) return emulated_->tensor(local.shape, local.dtype).requires_grad_(local.requires_gradient);
  if (local.kind == TensorKind::parameter)
    return aten::to_compute_device(initial_parameter(*graph_, local, *groups_, seed_));
  if (local.kind == TensorKind::buffer) return aten::to_compute_device(initial_buffer(*graph_, local, *groups_));
  return at::zeros(local.shape,
                   at::TensorOptions(aten::compute_device()).dtype(aten::scalar_type(local.dtype)));
}

// Its operation may have become several steps: the first reads what the model answers, the last leaves what backward
// starts from.
bool Replica::find_loss() {
  loss_step_ = stage_->steps.size();
  for (std::size_t i = 0; i < stage_->steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&stage_->steps[i]);
    if (compute && compute->operation == graph_->producer(graph_->loss)) loss_step_ = std::min(loss_step_, i);
    for (const LocalTensorId out : outputs_of(stage_->steps[i]))
      if (out.valid() && (*stage_)[out].origin == graph_->loss) loss_ = out;
  }
  return loss_.valid() && loss_step_ < stage_->steps.size();
}

void Replica::find_last_uses() {
  std::vector<std::size_t> last(stage_->tensors.size(), stage_->steps.size());
  for (std::size_t i = 0; i < stage_->steps.size(); ++i)
    for (const auto& ids : {outputs_of(stage_->steps[i]), inputs_of(stage_->steps[i])})
      for (const LocalTensorId id : ids)
        if (id.valid()) last[id.index()] = i;
  for (std::size_t t = 0; t < last.size(); ++t) {
    const LocalTensorId id{t};
    const bool sent = std::ranges::find(stage_->sends, id, &Link::tensor) != stage_->sends.end();
    if ((*stage_)[id].kind == TensorKind::activation && last[t] < dropped_after_.size() && id != loss_ && !sent)
      dropped_after_[last[t]].push_back(id);
  }
}

// What a segment begins from again must stay as it came: a sum over ranks is not made where it lies.
void Replica::find_kept_operands() {
  for (const Segment& segment : stage_->recomputed) {
    const std::vector<LocalTensorId> kept = inputs_of(*stage_, segment);
    for (std::size_t i = segment.begin; i < segment.end; ++i)
      reads_kept_[i] = std::ranges::any_of(inputs_of(stage_->steps[i]),
                                           [&](LocalTensorId in) { return std::ranges::count(kept, in) > 0; });
  }
}

void Replica::begin(std::int64_t step, int micro_batch, std::shared_ptr<LaterGradients> later) {
  later_ = std::move(later);
  micro_batch_ = micro_batch;
  if (!stage_->sends.empty() || !stage_->receives.empty())
    for (const LocalTensorId id : inputs_) (*this)[id] = initial(id);
  const auto number = static_cast<std::uint64_t>(step);
  pass_seed_ = mixed(mixed(mixed(seed_) ^ number) ^ static_cast<std::uint64_t>(micro_batch));
  int samples_of = groups_->coordinate(MeshAxis::data), of = groups_->size(MeshAxis::data);
  for (const MeshAxis axis : {MeshAxis::expert, MeshAxis::table}) {
    samples_of += of * groups_->coordinate(axis);
    of *= groups_->size(axis);
  }
  pass_seed_ = mixed(pass_seed_ ^ static_cast<std::uint64_t>(samples_of));
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

namespace {

bool draws(const Attributes& attributes) {
  const auto* attention = std::get_if<Attention>(&attributes);
  return std::holds_alternative<Dropout>(attributes) || (attention && attention->dropout > 0.0);
}

// Running statistics have taken this batch in when it was first seen.
Attributes without_statistics(Attributes attributes) {
  if (auto* normalization = std::get_if<Normalization>(&attributes)) normalization->momentum = 0.0;
  if (auto* normalize = std::get_if<ApplyNorm>(&attributes)) normalize->momentum = 0.0;
  return attributes;
}

// Of a sequence's queries, which ranks have a part of each, and keys, which they have all of: so many follow the rank's
// last query. The plan says what the last rank does.
std::int64_t keys_behind(const Stage& stage, const Compute& attention, const MeshGroups& groups) {
  constexpr std::size_t rows = 2;
  const LocalTensor &queries = stage[attention.inputs[0]], &keys = stage[attention.inputs[1]];
  const auto cut = [](const LocalTensor& tensor) {
    return std::ranges::find_if(
        tensor.cuts, [](const PartOf& part) { return part.axis == MeshAxis::context && part.layout.is_split(rows); });
  };
  if (cut(queries) == queries.cuts.end() || cut(keys) != keys.cuts.end()) return 0;
  return (groups.size(MeshAxis::context) - 1 - groups.coordinate(MeshAxis::context)) * queries.shape[rows];
}

Attributes on_this_rank(const Stage& stage, const Compute& compute, const MeshGroups& groups) {
  Attributes attributes = compute.attributes;
  if (auto* attention = std::get_if<Attention>(&attributes); attention && attention->causal)
    attention->behind += keys_behind(stage, compute, groups);
  return attributes;
}

}  // namespace

void Replica::seed_draws(const Compute& compute) const {
  std::uint64_t seed = mixed(pass_seed_ ^ compute.operation.index());
  for (const PartOf& cut : (*stage_)[compute.outputs.front()].cuts)
    seed = mixed(seed ^ static_cast<std::uint64_t>(groups_->coordinate(cut.axis) + 1));
  at::manual_seed(seed);
}

void Replica::compute(std::size_t step, bool training) {
  const auto& compute = std::get<Compute>(stage_->steps[step]);
  std::vector<Shape> shapes;
  for (const LocalTensorId out : compute.outputs) shapes.push_back(out.valid() ? (*stage_)[out].shape : Shape{});
  if (training && draws(compute.attributes)) seed_draws(compute);
  // Where the plan has no backward, autograd must not record one.
  const at::AutoGradMode mode(training && records_ && compute.gradients != 0);
  const Attributes own = on_this_rank(*stage_, compute, *groups_);
  const Attributes attributes = again_ ? without_statistics(own) : own;
  const auto* attention = std::get_if<Attention>(&attributes);
  const bool in_ring = attention != nullptr && attention->ring > 1;
  const auto run = [&](const std::vector<at::Tensor>& operands) {
    if (emulated_ != nullptr) return emulated_->run(step, operands);
    if (in_ring) {
      Attention op = *attention;
      if (!training) op.dropout = 0.0;
      return std::vector{aten::ring_attention(op, operands, ring())};
    }
    if (compute.strided && operands.front().is_cuda())
      return std::vector{operands.front().permute(std::get<Transpose>(attributes).permutation)};
    return aten::run_operation(attributes, operands, shapes);
  };
  const bool later = at::GradMode::is_enabled() && puts_off(step);
  if (!training && !in_ring)
    keep(compute, aten::run_for_evaluation(own, operands(compute), shapes));
  else
    keep(compute, later ? later_->record(later_masks_[step], operands(compute), run) : run(operands(compute)));
}

std::shared_ptr<aten::Ring> Replica::ring() {
  if (!ring_) ring_ = std::make_shared<RingPassing>(groups_->axis(MeshAxis::context));
  return ring_;
}

// Another form of a weight is recorded as ever: whoever reads it puts its gradient off.
bool Replica::puts_off(std::size_t step) const {
  if (later_masks_.empty() || later_masks_[step] == 0) return false;
  const Attributes& op = std::get<Compute>(stage_->steps[step]).attributes;
  return std::holds_alternative<Linear>(op) || std::holds_alternative<GroupedLinear>(op) ||
         std::holds_alternative<Convolution>(op);
}

void Replica::exchange(std::size_t step, bool training) {
  const auto& exchange = std::get<Exchange>(stage_->steps[step]);
  // Replicas evaluate apart, each as many samples as there are for it; batch-norm then needs no statistics of theirs.
  if (!training && exchange.axis == MeshAxis::data) {
    tensors_[exchange.output.index()] = tensors_[exchange.input.index()];
    return;
  }
  const at::AutoGradMode mode(training && records_ && (*stage_)[exchange.input].requires_gradient);
  const at::Tensor& input = tensors_[exchange.input.index()];
  Communicator& ranks = groups_->axis(exchange.axis);
  // Summands mostly have no other reader: then the sum is made where they lie.
  const bool overwrite = records_ || !reads_kept_[step];
  tensors_[exchange.output.index()] = emulated_ != nullptr ? emulated_->exchange(step, input, ranks, overwrite)
                                                           : run_exchange(exchange, input, ranks, overwrite);
}

namespace {

class BeforeNode final : public torch::autograd::FunctionPreHook {
 public:
  explicit BeforeNode(std::function<void()> action) : action_(std::move(action)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    action_();
    return gradients;
  }

 private:
  std::function<void()> action_;
};

}  // namespace

// The last node of a step is the first that runs backward.
void Replica::watch_backward(std::size_t index) {
  const auto* compute = std::get_if<Compute>(&stage_->steps[index]);
  if (!compute || compute->gradients == 0) return;
  const bool reads = std::ranges::any_of(
      compute->inputs, [&](LocalTensorId id) { return id.valid() && (*stage_)[id].kind == TensorKind::parameter; });
  for (const LocalTensorId out : compute->outputs) {
    if (!reads || !out.valid() || !tensors_[out.index()].grad_fn()) continue;
    tensors_[out.index()].grad_fn()->add_pre_hook(std::make_unique<BeforeNode>([this, index] {
      watch_.after_backward(index + 1);
      watch_.before_backward(index);
    }));
  }
}

void Replica::run_step(std::size_t index, bool training) {
  if (watch_.before_forward) (again_ ? watch_.before_backward : watch_.before_forward)(index);
  if (std::holds_alternative<Compute>(stage_->steps[index]))
    compute(index, training);
  else
    exchange(index, training);
  if (watch_.before_backward && training && records_) watch_backward(index);
  if (watch_.after_forward && !again_) watch_.after_forward(index);
  drop_after(index);
}

void Replica::run_training(std::size_t index) {
  if (spans_ != nullptr) spans_->begin_forward();
  run_step(index, true);
  if (spans_ != nullptr) spans_->end_forward(index);
}

// The samples lie where the next micro-batch's will: they are put back as they were.
std::vector<at::Tensor> Replica::run_again(const Segment& segment, const std::vector<at::Tensor>& inputs) {
  const std::vector<LocalTensorId> ids = inputs_of(*stage_, segment);
  std::vector<at::Tensor> before;
  for (std::size_t i = 0; i < ids.size(); ++i) before.push_back(std::exchange(tensors_[ids[i].index()], inputs[i]));
  again_ = true;
  if (spans_ != nullptr) spans_->end_backward();
  for (std::size_t i = segment.begin; i < segment.end; ++i) run_training(i);
  again_ = false;
  for (std::size_t i = 0; i < ids.size(); ++i) tensors_[ids[i].index()] = std::move(before[i]);
  std::vector<at::Tensor> results;
  for (const LocalTensorId id : outputs_of(*stage_, segment))
    results.push_back(std::exchange(tensors_[id.index()], at::Tensor()));
  return results;
}

// What of a segment's inputs lies elsewhere until its backward begins to go there.
Elsewhere Replica::leave(std::size_t segment, const std::vector<at::Tensor>& inputs) {
  if (outside_ == nullptr || stage_->kept_outside[segment].empty()) return {};
  const std::vector<LocalTensorId> ids = inputs_of(*stage_, stage_->recomputed[segment]);
  Elsewhere elsewhere;
  std::vector<at::Tensor> leaving;
  for (const LocalTensorId id : stage_->kept_outside[segment]) {
    elsewhere.inputs.push_back(static_cast<std::size_t>(std::ranges::find(ids, id) - ids.begin()));
    leaving.push_back(inputs[elsewhere.inputs.back()]);
  }
  outside_->leave(micro_batch_, segment, std::move(leaving));
  elsewhere.fetch = [outside = outside_, micro_batch = micro_batch_, segment] {
    return outside->fetch(micro_batch, segment);
  };
  return elsewhere;
}

void Replica::run_segment(const Segment& segment) {
  const std::vector<LocalTensorId> outputs = outputs_of(*stage_, segment);
  std::vector<at::Tensor> inputs;
  for (const LocalTensorId id : inputs_of(*stage_, segment)) inputs.push_back(tensors_[id.index()]);
  const auto run = [this, &segment, seed = pass_seed_, later = later_](const std::vector<at::Tensor>& given,
                                                                       bool again) {
    const std::uint64_t own = std::exchange(pass_seed_, seed);
    const std::shared_ptr<LaterGradients> own_later = std::exchange(later_, later);
    std::vector<at::Tensor> results;
    if (again) {
      results = run_again(segment, given);
    } else {
      records_ = false;
      for (std::size_t i = segment.begin; i < segment.end; ++i) run_training(i);
      records_ = true;
      for (const LocalTensorId id : outputs_of(*stage_, segment)) results.push_back(std::move(tensors_[id.index()]));
    }
    pass_seed_ = own;
    later_ = own_later;
    return results;
  };
  const auto number = static_cast<std::size_t>(&segment - stage_->recomputed.data());
  Elsewhere elsewhere = leave(number, inputs);
  const bool leaves = !elsewhere.inputs.empty();
  std::vector<at::Tensor> results = run_recomputed(run, inputs, std::move(elsewhere));
  if (leaves) outside_->left(micro_batch_, number);
  for (std::size_t i = 0; i < outputs.size(); ++i) tensors_[outputs[i].index()] = std::move(results[i]);
}

at::Tensor Replica::forward(OperationSpans* spans) {
  spans_ = spans;
  auto segment = stage_->recomputed.begin();
  for (std::size_t i = 0; i < stage_->steps.size();) {
    if (segment != stage_->recomputed.end() && segment->begin == i) {
      run_segment(*segment);
      i = segment++->end;
    } else {
      run_training(i++);
    }
  }
  return loss_.valid() ? take(loss_) : at::Tensor();
}

at::Tensor Replica::predict() {
  for (std::size_t i = 0; i < loss_step_; ++i) run_step(i, false);
  if (!loss_.valid()) return {};
  const LocalTensorId answer = std::get<Compute>(stage_->steps[loss_step_]).inputs.front();
  const at::Tensor result = groups_->whole(tensors_[answer.index()], (*stage_)[answer]);
  for (const LocalTensorId id : dropped_after_[loss_step_]) tensors_[id.index()].reset();
  for (std::size_t i = loss_step_; watch_.after_forward && i < stage_->steps.size(); ++i) watch_.after_forward(i);
  return result;
}

}  // namespace sibyl::trainer

#include "trainer/emulated_device.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "aten/dtype.h"
#include "aten/memory.h"
#include "aten/weightless.h"
#include "comm/prompt_thread.h"

namespace sibyl::trainer {
namespace {

using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

std::chrono::steady_clock::duration ticks(Seconds time) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(time.value()));
}

bool is_scalar_loss(const at::Tensor& x) { return x.dim() == 0; }

bool is_number(const LocalTensor& tensor) { return tensor.shape.empty() && is_floating(tensor.dtype); }

// Of a loss, and of what it is made of, the gradients are numbers as the losses are: autograd begins with one.
at::Tensor gradient_of(EmulatedDevice& device, const LocalTensor& tensor) {
  return is_number(tensor) ? at::zeros({}, at::kFloat) : device.tensor(tensor.shape, tensor.dtype);
}

class OperationNode final : public Node {
 public:
  OperationNode(EmulatedDevice& device, std::size_t step, edge_list next)
      : Node(std::move(next)), device_(device), step_(step) {}

  void keep(at::Tensor tensor) { kept_.push_back(std::move(tensor)); }

  variable_list apply(variable_list&& gradients) override {
    const at::NoGradGuard no_grad;
    const auto& compute = std::get<Compute>(device_.stage().steps[step_]);
    const at::Tensor incoming = gradients.empty() ? at::Tensor() : std::move(gradients.front());
    gradients.clear();
    device_.run_backward(step_);
    variable_list results(compute.inputs.size());
    for (std::size_t i = 0; i < compute.inputs.size(); ++i) {
      if (!(compute.gradients >> i & 1U) || !task_should_compute_output(i)) continue;
      const LocalTensor& input = device_.stage()[compute.inputs[i]];
      const bool same = incoming.defined() && !is_scalar_loss(incoming) &&
                        passes_gradient(device_.stage(), compute, i, device_.backend()) &&
                        input.kind != TensorKind::parameter;
      results[i] = same ? aten::weightless_view(incoming, input.shape) : gradient_of(device_, input);
    }
    device_.take_scratch_of_backward(step_);
    return results;
  }
  void release_variables() override { kept_.clear(); }
  std::string name() const override { return "EmulatedOperation"; }

 private:
  EmulatedDevice& device_;
  std::size_t step_;
  std::vector<at::Tensor> kept_;
};

// `overwrite`: as of perform().
at::Tensor moved(EmulatedDevice& device, const Transfer& transfer, const EmulatedWork& copies, const at::Tensor& x,
                 const LocalTensor& result, Communicator& communicator, bool overwrite) {
  if (transfer.motion == Motion::pass_round || transfer.motion == Motion::sum_round) {
    device.send_beside(transfer, x, communicator);
    return aten::weightless_view(x, result.shape);
  }
  if (collective_of(transfer.motion)) {
    device.wait();
    device.send(transfer, x, communicator);
    device.host_waited();
  }
  device.run(copies);
  if (is_scalar_loss(x)) return x.variable_data();
  const bool here = in_place(transfer) && (overwrite || transfer.motion == Motion::none);
  return here ? aten::weightless_view(x, result.shape) : device.tensor(result.shape, result.dtype);
}

class EmulatedExchangeNode final : public Node {
 public:
  EmulatedExchangeNode(EmulatedDevice& device, std::size_t step, Communicator& communicator, edge_list next)
      : Node(std::move(next)), device_(device), step_(step), communicator_(communicator) {}

  variable_list apply(variable_list&& gradients) override {
    const at::NoGradGuard no_grad;
    at::Tensor gradient = std::move(gradients.at(0));
    gradients.clear();
    const auto& exchange = std::get<Exchange>(device_.stage().steps[step_]);
    const LocalTensor& output = device_.stage()[exchange.output];
    if (!gradient.defined()) gradient = gradient_of(device_, output);
    return {moved(device_, exchange.backward, device_.times().steps[step_].backward, gradient,
                  device_.stage()[exchange.input], communicator_, true)};
  }
  std::string name() const override { return "EmulatedExchange"; }

 private:
  EmulatedDevice& device_;
  std::size_t step_;
  Communicator& communicator_;
};

}  // namespace

EmulatedDevice::EmulatedDevice(const Stage& stage, const EmulatedStage& times, Backend backend, bool sums_apart,
                               EmulatedClock& clock)
    : stage_(stage),
      times_(times),
      clock_(clock),
      backend_(backend),
      later_(splits_backward(stage) ? later_gradients(stage) : std::vector<std::uint32_t>(stage.steps.size(), 0)) {
  aten::count_weightless(backend == Backend::cpu ? 64 : 512, sums_apart);
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    rules_.push_back(compute ? rule_of(stage, *compute, backend) : TrainingRule{});
  }
  comm::precise_sleeps();
  comm::run_promptly();
  begin_step();
}

at::Tensor EmulatedDevice::tensor(const Shape& shape, DType type) const {
  return aten::weightless(shape, aten::scalar_type(type));
}

void EmulatedDevice::vary(RandomStream draws, double step_spread) { draws_ = draws, step_spread_ = step_spread; }

void EmulatedDevice::begin_step() {
  step_factor_ = drawn(step_spread_);
  busy_ = {};
  clock_.issued = clock_.ended = Clock::now();
}

double EmulatedDevice::drawn(double spread) { return draws_ ? log_normal(*draws_, spread) : 1.0; }

// What is complete by then goes into buckets at once.
void EmulatedDevice::begin_backward(Turn::Kind kind, bool first, bool last) {
  kind_ = kind, first_ = first, last_ = last;
  if (kind != Turn::Kind::backward_weight || !last) return;
  for (std::size_t step = times_.steps.size(); step-- > 0;)
    if (later_[step] == 0) run(times_.steps[step].bucket_copies);
}

void EmulatedDevice::send(const Transfer& transfer, const at::Tensor& x, Communicator& communicator) {
  messages_.send(transfer, x.sizes().vec(), x.itemsize(), communicator);
}

// Forward the kernel that reads it is launched next; backward it has been.
void EmulatedDevice::send_beside(const Transfer& transfer, const at::Tensor& x, Communicator& communicator) {
  waiting_.push_back({transfer, x, &communicator});
  if (transfer.motion == Motion::sum_round) send_waiting();
}

// Beside the last kernel that was launched, from when it begins. With the last part, when it is there, that kernel has
// as much to do as with each of the others.
void EmulatedDevice::send_waiting() {
  if (waiting_.empty()) return;
  std::this_thread::sleep_until(ended() - last_kernel_);
  const int ranks = waiting_.front().transfer.ranks;
  for (const Beside& beside : std::exchange(waiting_, {})) send(beside.transfer, beside.x, *beside.communicator);
  const std::lock_guard lock(clock_.copying);
  clock_.ended = std::max(clock_.ended, Clock::now() + last_kernel_ / ranks);
}

EmulatedDevice::Clock::time_point EmulatedDevice::ended() const {
  const std::lock_guard lock(clock_.copying);
  return clock_.ended;
}

// Slice by slice: of one that goes beside kernels these lose as much as it moves.
void EmulatedDevice::copy(Seconds duration) {
  constexpr Clock::duration longest = std::chrono::microseconds(500);
  const double slowed = times_.beside_copies;
  Clock::time_point now = Clock::now();
  for (Clock::duration left = ticks(duration); left > Clock::duration::zero();) {
    const Clock::duration slice = slowed > 1 ? std::min(left, longest) : left;
    left -= slice;
    {
      const std::lock_guard lock(clock_.copying);
      const bool beside = slowed > 1 && clock_.ended > now;
      const auto takes = beside ? std::chrono::duration_cast<Clock::duration>(slice * slowed) : slice;
      if (beside) clock_.ended += takes - slice;
      now += takes;
    }
    std::this_thread::sleep_until(now);
  }
}

void EmulatedDevice::run(const EmulatedWork& work) {
  spend(work);
  take_scratch(work);
}

void EmulatedDevice::spend(const EmulatedWork& work) {
  clock_.issued += ticks(work.issue);
  const Clock::duration duration = ticks(work.duration * (step_factor_ * drawn(work.spread)));
  {
    const std::lock_guard lock(clock_.copying);
    clock_.ended = std::max(clock_.ended, clock_.issued) + duration;
  }
  busy_ += duration;
  if (duration > Clock::duration::zero()) last_kernel_ = duration;
  if (wait_after_each_) wait();
}

void EmulatedDevice::take_scratch(const EmulatedWork& work) {
  const auto scratch = static_cast<std::int64_t>(work.workspace.value());
  aten::MemoryMeter::take(scratch);
  aten::MemoryMeter::give(scratch);
}

void EmulatedDevice::take_scratch_of_backward(std::size_t step) {
  if (kind_ != Turn::Kind::backward_weight) take_scratch(times_.steps[step].backward);
  if (kind_ != Turn::Kind::backward_input) take_scratch(times_.steps[step].backward_weight);
}

void EmulatedDevice::wait() {
  Clock::time_point until;
  do {  // copies may put it off meanwhile
    until = ended();
    std::this_thread::sleep_until(until);
  } while (ended() > until);
  clock_.issued = std::max(clock_.issued, until);
}

void EmulatedDevice::host_waited() {
  const std::lock_guard lock(clock_.copying);
  clock_.issued = clock_.ended = std::max(clock_.ended, Clock::now());
}

// In a turn for inputs alone the steps that put nothing off do all but hand their gradients to buckets.
void EmulatedDevice::run_backward(std::size_t step) {
  const EmulatedStage::OfStep& work = times_.steps[step];
  if (kind_ != Turn::Kind::backward_weight) spend(work.backward);
  if (kind_ != Turn::Kind::backward_input) spend(work.backward_weight);
  const bool puts_off = kind_ == Turn::Kind::backward_input && later_[step] != 0;
  if (!puts_off) run(work.parameter_casts);
  if (!first_ && !puts_off) run(work.parameter_sums);
  if (!last_ && !stage_.reduces_each) return;
  run(work.bucket_copies);
  // The bucket may go now, not earlier; what gradients are made in has no copies to tell.
  if (stage_.in_buckets || work.bucket_copies.duration.value() > 0) wait();
}

std::vector<at::Tensor> EmulatedDevice::run(std::size_t step, const std::vector<at::Tensor>& inputs) {
  const auto& compute = std::get<Compute>(stage_.steps[step]);
  const TrainingRule& rule = rules_[step];
  spend(times_.steps[step].forward);
  send_waiting();
  std::shared_ptr<OperationNode> node;
  if (at::GradMode::is_enabled() && compute.gradients != 0)
    node = std::shared_ptr<OperationNode>(new OperationNode(*this, step, torch::autograd::collect_next_edges(inputs)),
                                          torch::autograd::deleteNode);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> outputs;
  for (const LocalTensorId out : compute.outputs) {
    if (!out.valid()) {
      outputs.emplace_back();
      continue;
    }
    const LocalTensor& local = stage_[out];
    if (is_number(local))
      outputs.push_back(at::zeros({}, at::kFloat));  // a loss, which backward starts from
    else
      outputs.push_back(rule.view ? aten::weightless_view(inputs.front(), local.shape, aten::scalar_type(local.dtype))
                                  : tensor(local.shape, local.dtype));
  }
  take_scratch(times_.steps[step].forward);
  if (!node) return outputs;
  for (const Saved& saved : rule.saved) switch (saved.what) {
      case Saved::What::input:
        if (inputs.at(saved.index).defined()) node->keep(inputs[saved.index].variable_data());
        break;
      case Saved::What::output: node->keep(outputs.at(saved.index).variable_data()); break;
      case Saved::What::extra: node->keep(tensor({static_cast<std::int64_t>(saved.bytes.value())}, DType::u8)); break;
    }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined() && is_floating(stage_[compute.outputs[i]].dtype))
      torch::autograd::set_history(outputs[i], node);
    else
      node->add_input_metadata(Node::undefined_input());
  }
  return outputs;
}

at::Tensor EmulatedDevice::exchange(std::size_t step, const at::Tensor& x, Communicator& communicator, bool overwrite) {
  const auto& exchange = std::get<Exchange>(stage_.steps[step]);
  std::shared_ptr<EmulatedExchangeNode> node;
  if (at::GradMode::is_enabled() && x.requires_grad())
    node = std::shared_ptr<EmulatedExchangeNode>(
        new EmulatedExchangeNode(*this, step, communicator, torch::autograd::collect_next_edges(x)),
        torch::autograd::deleteNode);
  const at::NoGradGuard no_grad;
  at::Tensor result =
      moved(*this, exchange.forward, times_.steps[step].forward, x, stage_[exchange.output], communicator, overwrite);
  if (node) torch::autograd::set_history(result, node);
  return result;
}

}  // namespace sibyl::trainer

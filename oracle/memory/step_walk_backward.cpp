// The backward half of StepWalk.
#include <algorithm>
#include <utility>

#include "oracle/memory/step_walk.h"
#include "oracle/plan/regathered.h"

namespace sibyl {

using enum MemoryKind;

void StepWalk::backward(Turn::Kind kind, bool last) {
  ledger_.phase("backward");
  const bool later = kind == Turn::Kind::backward_weight;
  if (!stage_.steps.empty()) enter(kind, stage_.steps.size() - 1);
  if (!later) receive_gradients();
  if (!later) bring_before(stage_.recomputed.size());
  std::vector<int> to_come = to_come_;
  for (std::size_t i = stage_.steps.size(); i-- > 0;) {
    enter(kind, i);
    for (std::size_t u = stage_.units.size(); !later && u-- > 0;)  // gradients of weights read no parameter
      if (stage_.units[u].end == i + 1) enter_unit(u, false);
    if (const std::size_t s = segment_ended_[i + 1]; !later && s != none) {
      if (!stage_.kept_outside.empty() && !stage_.kept_outside[s].empty()) bring_before(s);
      replay(s);
    }
    if (later)
      catch_up(i);
    else
      backward(i);
    for (const LocalTensorId id : facts_[i].gradients)
      if (--to_come[id.index()] == 0 && (last || stage_.reduces_each)) give_to_bucket(id);
    if (!later && segment_begun_[i] != none) end_segment(segment_begun_[i]);
    for (std::size_t u = 0; u < stage_.units.size(); ++u)
      if (stage_.units[u].begin == i) leave(u);
  }
  if (!later) send_gradients();
  if (kind != Turn::Kind::backward_input) end_micro_batch();
}

void StepWalk::receive_gradients() {
  for (const Link& link : stage_.sends)
    if (link.gradient)
      hold(gradient_of_[link.tensor.index()] =
               allocate(bytes_of(link.tensor), activations, owner(What::gradient, link.tensor)));
}

// Then the rank holds nothing more for this micro-batch.
void StepWalk::send_gradients() {
  for (const Link& link : stage_.receives) {
    release(gradient_of_[link.tensor.index()]);
    gradient_of_[link.tensor.index()] = Storages::none;
  }
  for (const std::size_t storage : held().own) release(storage);
  held().own.clear();
}

void StepWalk::backward(std::size_t i) {
  const auto* compute = std::get_if<Compute>(&stage_.steps[i]);
  if (compute && compute->gradients == 0) return;
  const auto& kernel = priced_.kernels.steps[i].backward;
  if (compute)
    differentiate(i, compute->gradients & ~later_[i], incoming(*compute), kernel);
  else
    with_workspace(kernel, [&] { move_back(std::get<Exchange>(stage_.steps[i])); });
  if (reuse_ && !compute) touch_moved_back(i);
  if (later_[i] != 0) {
    // What the gradients of weights need stays: what autograd kept, and the gradient that came in.
    hold(incoming(*compute));
    held().saved[i].push_back(incoming(*compute));
  } else {
    let_go(i);
  }
  forget_gradients(i);
}

// The second part of a step's backward.
void StepWalk::catch_up(std::size_t i) {
  if (later_[i] == 0) return;
  const std::size_t came_in = held().saved[i].empty() ? Storages::none : held().saved[i].back();
  differentiate(i, later_[i], came_in, priced_.kernels.steps[i].backward_weight);
  let_go(i);
  forget_gradients(i);
}

void StepWalk::let_go(std::size_t i) {
  for (const std::size_t storage : held().saved[i]) release(storage);
  held().saved[i].clear();
}

void StepWalk::forget_gradients(std::size_t i) {
  for (const LocalTensorId out : facts_[i].outputs) {
    release(gradient_of_[out.index()]);
    gradient_of_[out.index()] = Storages::none;
  }
}

std::size_t StepWalk::incoming(const Compute& compute) const {
  return compute.outputs.empty() ? Storages::none : gradient_of_[compute.outputs[0].index()];
}

// Of a sharded bucket the copy in its buffer is all that is wanted of a gradient.
void StepWalk::give_to_bucket(LocalTensorId id) {
  if (!sharded_[id.index()] || strategy_.exchange != GradientExchange::overlapped) return;
  if (gradients_in_buckets(strategy_)) return;
  release(gradient_of_[id.index()]);
  gradient_of_[id.index()] = Storages::none;
}

// All results of a kernel are there while it still has its workspace, those that are then added to earlier ones, too.
void StepWalk::differentiate(std::size_t step, std::uint32_t mask, std::size_t incoming,
                             const std::optional<std::size_t>& kernel) {
  const StepFacts& facts = facts_[step];
  const auto passed_through = [&](std::size_t in) { return (facts.passed_through >> in & 1U) != 0; };
  const auto each = [&](std::uint32_t wanted, auto&& visit) {
    for (std::size_t in = 0; in < facts.inputs.size(); ++in)
      if (wanted >> in & 1U) visit(in, facts.inputs[in]);
  };
  std::uint32_t added = 0;
  with_workspace(kernel, [&] {
    each(mask, [&](std::size_t in, LocalTensorId id) {
      if (sum_of(step, in) == Storages::none) {
        sum_of(step, in) = first_gradient(id, incoming, passed_through(in));
      } else {
        take_addend(id, passed_through(in));
        added |= 1U << in;
      }
    });
  });
  if (reuse_) touch_backward(step, incoming, mask, kernel);
  each(added, [&](std::size_t in, LocalTensorId id) { add_gradient(sum_of(step, in), id, passed_through(in)); });
  each(mask & facts.met, [&](std::size_t, LocalTensorId id) { met(id); });
}

// Where an operand's gradient is summed.
std::size_t& StepWalk::sum_of(std::size_t step, std::size_t operand) {
  const std::size_t id = facts_[step].inputs[operand].index();
  return facts_[step].met >> operand & 1U ? meetings_.at(id).sum : gradient_of_[id];
}

// One of those that meet has come: after the last, the parameter has their sum for its gradient, or added to it.
void StepWalk::met(LocalTensorId id) {
  Meeting& meeting = meetings_.at(id.index());
  if (--meeting.to_come > 0) return;
  meeting.to_come = meeting.of;
  const std::size_t sum = std::exchange(meeting.sum, Storages::none);
  std::size_t& gradient = gradient_of_[id.index()];
  if (gradient == Storages::none)
    gradient = sum;
  else
    release(sum);
}

void StepWalk::move_back(const Exchange& exchange) {
  if (!stage_[exchange.input].requires_gradient) return;
  const std::size_t incoming = gradient_of_[exchange.output.index()];
  // A gradient that somebody else holds, too, is summed in a copy.
  const bool shared = storages_.is_shared(incoming);
  const bool copied = exchange.backward.motion == Motion::all_reduce && shared;
  receive_gradient(exchange.input, incoming, in_place(exchange.backward) && !copied);
  pack(exchange, exchange.backward, exchange.output, exchange.input);  // until the gradient is put together
}

// A tensor's first gradient is taken as it is, or is the incoming one; each later one is added.
void StepWalk::receive_gradient(LocalTensorId id, std::size_t incoming, bool passed_through) {
  std::size_t& gradient = gradient_of_[id.index()];
  if (gradient == Storages::none) {
    gradient = first_gradient(id, incoming, passed_through);
    return;
  }
  take_addend(id, passed_through);
  add_gradient(gradient, id, passed_through);
}

std::size_t StepWalk::first_gradient(LocalTensorId id, std::size_t incoming, bool passed_through) {
  const bool parameter = stage_[id].kind == TensorKind::parameter;
  // Leaves, parameters and what was received, have a gradient of their own.
  const bool shared = incoming != Storages::none && passed_through && !parameter && !is_received(id);
  const std::size_t gradient =
      shared ? incoming : allocate(sum_bytes(id), parameter ? gradients : activations, owner(What::gradient, id));
  hold(gradient);
  return gradient;
}

void StepWalk::take_addend(LocalTensorId id, bool passed_through) {
  if (!passed_through) ledger_.take(activations, bytes_of(id), owner(What::addend, id));
}

// A further gradient is summed in place into the first, unless somebody else holds that one too (a gradient passed
// through to several operands), or autograd never does so: then the sum is a new tensor. To what a parameter has of
// earlier graphs it is always added in place.
void StepWalk::add_gradient(std::size_t& sum, LocalTensorId id, bool passed_through) {
  const double bytes = bytes_of(id);
  const bool earlier = stage_[id].kind == TensorKind::parameter && &sum == &gradient_of_[id.index()];
  if (storages_.is_shared(sum) || (sums_apart_ && !earlier)) {
    const std::size_t apart = allocate(sum_bytes(id), storages_.kind(sum), owner(What::gradient, id));
    hold(apart);
    release(sum);
    sum = apart;
  }
  if (!passed_through) ledger_.give(activations, bytes, owner(What::addend, id));
}

}  // namespace sibyl

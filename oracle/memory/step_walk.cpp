#include "oracle/memory/step_walk.h"

#include <algorithm>

#include "oracle/memory/state.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/offload_activations.h"
#include "oracle/plan/offload_parameters.h"
#include "oracle/plan/precision.h"
#include "oracle/plan/recompute.h"
#include "oracle/plan/regathered.h"
#include "oracle/plan/zero.h"

namespace sibyl {

using enum MemoryKind;

namespace {

// Of transfers in place: what lies there afterwards is another value.
bool overwrites(const Transfer& transfer) {
  return transfer.motion == Motion::all_reduce || transfer.motion == Motion::maximum || transfer.motion == Motion::fill;
}

}  // namespace

StepWalk::StepWalk(const Stage& stage, const PricedStage& priced, const Strategy& strategy, const Device& device,
                   Ledger& ledger, int backward_turns, Reuse* reuse)
    : stage_(stage),
      priced_(priced),
      strategy_(strategy),
      ledger_(ledger),
      storages_(ledger, reuse),
      storage_of_(stage.tensors.size(), Storages::none),
      gradient_of_(stage.tensors.size(), Storages::none),
      again_(recomputed_steps(stage)),
      regathered_(regathered_tensors(stage, strategy)),
      reads_kept_(stage.steps.size(), false),
      later_(splits_backward(stage) ? later_gradients(stage) : std::vector<std::uint32_t>(stage.steps.size(), 0)),
      linked_(!stage.receives.empty() || !stage.sends.empty()),
      sums_apart_(device.sums_apart),
      sharded_(sharded_parameters(stage)),
      gathered_(stage.units.size(), false),
      brought_(gathered_),
      backward_turns_(backward_turns),
      reuse_(reuse) {
  for (const Step& step : stage.steps) facts_.push_back(facts_of(stage, step, device.backend));
  segment_begun_.assign(stage.steps.size() + 1, none);
  segment_ended_ = segment_begun_;
  for (const Segment& segment : stage.recomputed) {
    segment_begun_[segment.begin] = segment_ended_[segment.end] = segments_.size();
    segments_.push_back({inputs_of(stage, segment), outputs_of(stage, segment)});
    for (std::size_t i = segment.begin; i < segment.end; ++i)
      if (const auto* exchange = std::get_if<Exchange>(&stage.steps[i]))
        reads_kept_[i] = std::ranges::count(segments_.back().inputs, exchange->input) > 0;
  }
  for (const LocalTensor& tensor : stage.tensors)
    bytes_.push_back(static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype));
  uses_.assign(stage.tensors.size(), 0);
  to_come_ = uses_;
  for (const StepFacts& facts : facts_) {
    for (const LocalTensorId in : facts.inputs)
      if (in.valid()) ++uses_[in.index()];
    for (const LocalTensorId id : facts.gradients) ++to_come_[id.index()];
  }
  find_meetings();
}

// Each segment that runs again is a graph of its own, and so is what is put off to a turn for weights: there a
// parameter's gradient is added to at once.
void StepWalk::find_meetings() {
  std::map<std::size_t, std::vector<std::pair<std::size_t, std::size_t>>> read;  // by parameter: step and operand
  for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&stage_.steps[i]);
    if (!compute || again_[i]) continue;
    for (std::size_t in = 0; in < compute->inputs.size(); ++in)
      if ((compute->gradients & ~later_[i]) >> in & 1U && stage_[compute->inputs[in]].kind == TensorKind::parameter)
        read[compute->inputs[in].index()].emplace_back(i, in);
  }
  for (const auto& [parameter, places] : read) {
    if (places.size() < 2) continue;
    meetings_[parameter].of = meetings_[parameter].to_come = static_cast<int>(places.size());
    for (const auto& [step, operand] : places) facts_[step].met |= 1U << operand;
  }
}

StepWalk::StepFacts StepWalk::facts_of(const Stage& stage, const Step& step, Backend backend) {
  StepFacts facts;
  const auto ids = [](std::span<const LocalTensorId> all) { return std::vector(all.begin(), all.end()); };
  facts.inputs = ids(inputs_of(step));
  facts.outputs = ids(outputs_of(step));
  each_gradient(stage, step, [&](LocalTensorId id) { facts.gradients.push_back(id); });
  const auto* compute = std::get_if<Compute>(&step);
  if (!compute) return facts;
  facts.rule = rule_of(stage, *compute, backend);
  for (std::size_t in = 0; in < compute->inputs.size(); ++in)
    if (compute->gradients >> in & 1U && passes_gradient(stage, *compute, in, backend))
      facts.passed_through |= 1U << in;
  return facts;
}

void StepWalk::take_static() {
  take_state(stage_, strategy_, ledger_);
  for (std::size_t t = 0; gradients_in_buckets(strategy_) && t < stage_.tensors.size(); ++t) {
    if (stage_.tensors[t].kind != TensorKind::parameter || to_come_[t] == 0) continue;
    gradient_of_[t] = allocate(gradient_bytes(LocalTensorId{t}), gradients, owner(What::gradient, t));
    hold(gradient_of_[t]);
  }
  for (std::size_t i = 0; i < stage_.tensors.size(); ++i)
    if (stage_.tensors[i].kind == TensorKind::input && !linked_)
      ledger_.take(activations, bytes_of(LocalTensorId{i}), owner(What::tensor, i));
}

void StepWalk::take(const Turn& turn) {
  micro_batch_ = turn.micro_batch;
  begin_micro_batch();
  if (turn.kind == Turn::Kind::forward)
    forward();
  else
    backward(turn.kind, ++backwards_ == backward_turns_);
}

// Gradients are dropped after the update, so its peak is what is live now and one kernel's workspace.
void StepWalk::update() {
  ledger_.phase("optimizer");
  ledger_.enter({StepPlace::What::update, &stage_, {}, 0, 0});
  if (reuse_) touch_update();
  // Every direction is known before the norms of the whole tensors are.
  std::vector<double> directions;
  if (strategy_.optimizer == OptimizerKind::lamb && !stage_.norm_axes.empty()) directions = direction_bytes(stage_);
  for (const double bytes : directions) ledger_.take(optimizer, bytes, owner(What::direction, 0));
  if (!stage_.blocks.empty()) return update_blocks();
  for (const std::size_t kernel : priced_.kernels.updates) with_workspace(kernel, [] {});
  for (const double bytes : directions) ledger_.give(optimizer, bytes, owner(What::direction, 0));
}

// What lies elsewhere: beside the block at hand there are the next one and, until the one after that comes, the
// last.
void StepWalk::update_blocks() {
  const auto each_tensor = [&](std::size_t block, auto&& visit) {
    const StateBlock& own = stage_.blocks[block];
    for (const std::int64_t elements : updated_elements(stage_, own))
      for (int i = 0; stage_.state_tier != Tier::device && i < state_tensors(stage_); ++i)
        visit(optimizer, 4.0 * static_cast<double>(elements), owner(What::block, block));
    for (const StateBlock::Part& part : own.parts)
      if (stage_.parameter_tier != Tier::device && has_unit(stage_, part.sync, part.bucket))
        visit(weights, static_cast<double>(part_bytes(stage_, part.sync, part.bucket)), owner(What::block, block));
  };
  const auto take = [&](std::size_t block) {
    each_tensor(block,
                [&](MemoryKind kind, double bytes, const MemoryOwner& whose) { ledger_.take(kind, bytes, whose); });
  };
  const auto give = [&](std::size_t block) {
    each_tensor(block,
                [&](MemoryKind kind, double bytes, const MemoryOwner& whose) { ledger_.give(kind, bytes, whose); });
  };
  const std::size_t count = stage_.blocks.size();
  for (std::size_t b = 0; b < count; ++b) {
    if (b >= 2) give(b - 2);
    for (std::size_t next = b == 0 ? 0 : b + 1; next < std::min(b + 2, count); ++next) take(next);
    for (std::size_t u = 0; u < priced_.kernels.updates.size(); ++u)
      if (priced_.kernels.updated_blocks[u] == b) with_workspace(priced_.kernels.updates[u], [] {});
  }
  for (std::size_t b = count < 2 ? 0 : count - 2; b < count; ++b) give(b);
}

void StepWalk::begin_micro_batch() {
  const auto [entry, added] = held_.try_emplace(micro_batch_);
  held_now_ = &entry->second;
  if (!added) return;
  if (!given_up_.empty()) {
    *held_now_ = std::move(given_up_.back());
    given_up_.pop_back();
  }
  held_now_->saved.resize(stage_.steps.size());
  held_now_->segments.resize(stage_.recomputed.size());
}

void StepWalk::end_micro_batch() {
  Held& ended = held();
  for (std::vector<std::size_t>& saved : ended.saved) saved.clear();
  for (std::vector<std::size_t>& kept : ended.segments) kept.clear();
  ended.own.clear();
  given_up_.push_back(std::move(ended));
  held_.erase(micro_batch_);
}

// What comes from outside for this micro-batch.
void StepWalk::receive() {
  for (std::size_t t = 0; linked_ && t < stage_.tensors.size(); ++t) {
    if (stage_.tensors[t].kind != TensorKind::input) continue;
    const std::size_t last = storage_of_[t];
    hold(storage_of_[t] = allocate(bytes_of(LocalTensorId{t}), activations, owner(What::tensor, t)));
    release(last);
  }
  for (const Link& link : stage_.receives) {
    hold(storage_of_[link.tensor.index()] =
             allocate(bytes_of(link.tensor), activations, owner(What::tensor, link.tensor)));
    keep(link.tensor);
  }
}

void StepWalk::keep(LocalTensorId id) {
  hold(storage_of_[id.index()]);
  held().own.push_back(storage_of_[id.index()]);
}

void StepWalk::forward() {
  ledger_.phase("forward");
  enter(Turn::Kind::forward, 0);
  receive();
  std::vector<int> uses = uses_;
  for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
    enter(Turn::Kind::forward, i);
    for (std::size_t u = 0; u < stage_.units.size(); ++u)
      if (stage_.units[u].begin == i) enter_unit(u, true);
    if (segment_begun_[i] != none) keep_inputs(segment_begun_[i]);
    run(i, uses, !again_[i]);
    if (segment_ended_[i + 1] != none) leave_inputs(segment_ended_[i + 1]);
    for (std::size_t u = 0; u < stage_.units.size(); ++u)
      if (stage_.units[u].end == i + 1 && !stays_gathered(stage_, stage_.units[u])) leave(u);
  }
  hand_on();
}

// The program lets go of what it sent and of what it received; the rank holds both: there backward begins and ends.
void StepWalk::hand_on() {
  if (!frees_sent(strategy_))
    for (const Link& link : stage_.sends) keep(link.tensor);
  for (const Link& link : stage_.sends) release(storage_of_[link.tensor.index()]);
  for (const Link& link : stage_.receives)
    if (!is_sent(link.tensor)) release(storage_of_[link.tensor.index()]);
}

bool StepWalk::is_sent(LocalTensorId id) const {
  return std::any_of(stage_.sends.begin(), stage_.sends.end(), [&](const Link& link) { return link.tensor == id; });
}

bool StepWalk::is_received(LocalTensorId id) const {
  return std::any_of(stage_.receives.begin(), stage_.receives.end(),
                     [&](const Link& link) { return link.tensor == id; });
}

// Does the program let go of it after its last consumer?
bool StepWalk::dies(LocalTensorId id) const {
  if (!linked_) return true;
  return stage_[id].kind != TensorKind::input && !is_sent(id) && !is_received(id);
}

// `uses`: consumers to come, by tensor.
void StepWalk::run(std::size_t i, std::vector<int>& uses, bool saves) {
  const Step& step = stage_.steps[i];
  const auto* compute = std::get_if<Compute>(&step);
  with_workspace(priced_.kernels.steps[i].forward, [&] {
    if (compute)
      produce(*compute, facts_[i].rule);
    else
      move(std::get<Exchange>(step), !saves && reads_kept_[i]);
  });
  if (compute && saves) save(*compute, i);
  if (reuse_) touch_forward(i);
  const bool replayed = saves && again_[i];
  // The program's own reference goes when the last consumer has run (at once if nobody consumes it).
  for (const LocalTensorId in : facts_[i].inputs)
    if (in.valid() && --uses[in.index()] == 0 && (replayed || dies(in))) release(storage_of_[in.index()]);
  for (const LocalTensorId out : facts_[i].outputs)
    if (uses[out.index()] == 0 && (replayed || dies(out))) release(storage_of_[out.index()]);
}

void StepWalk::move(const Exchange& exchange, bool stays) {
  std::size_t& storage = storage_of_[exchange.output.index()];
  const bool shared = in_place(exchange.forward) && !(stays && overwrites(exchange.forward));
  storage = shared ? storage_of_[exchange.input.index()]
                   : allocate(bytes_of(exchange.output), activations, owner(What::tensor, exchange.output));
  hold(storage);
  if (regathered_[exchange.output.index()]) keep(exchange.input);
  pack(exchange, exchange.forward, exchange.input, exchange.output, stays);
}

// Parts that lie in a row are summed there, unless that must stay.
void StepWalk::pack(const Exchange& exchange, const Transfer& transfer, LocalTensorId from, LocalTensorId to,
                    bool stays) {
  const Shape &given = stage_[from].shape, &taken = stage_[to].shape;
  const std::int64_t elements = stays && transfer.motion == Motion::reduce_scatter
                                    ? buffer_elements(transfer, given, taken)
                                    : packing_elements(transfer, given, taken, strategy_.degree(exchange.axis));
  const double bytes = static_cast<double>(elements) * size_in_bytes(stage_[from].dtype);
  ledger_.take(communication, bytes, owner(What::packing, to));
  ledger_.give(communication, bytes, owner(What::packing, to));
}

void StepWalk::produce(const Compute& compute, const TrainingRule& rule) {
  const bool view = rule.view && !compute.inputs.empty() && compute.inputs[0].valid();
  for (const LocalTensorId out : compute.outputs) {
    // A view of a parameter or an input allocates nothing and holds nothing that could be freed.
    std::size_t& storage = storage_of_[out.index()];
    storage =
        view ? storage_of_[compute.inputs[0].index()] : allocate(bytes_of(out), activations, owner(What::tensor, out));
    hold(storage);
  }
}

void StepWalk::save(const Compute& compute, std::size_t step) {
  if (compute.gradients == 0) return;
  for (const Saved& saved : facts_[step].rule.saved) {
    std::size_t storage = Storages::none;
    if (saved.what == Saved::What::extra)
      storage = allocate(saved.bytes.value(), activations, owner(What::kept, step));
    else if (saved.what == Saved::What::input && saved.index < compute.inputs.size() &&
             compute.inputs[saved.index].valid()) {
      if (regathered_[compute.inputs[saved.index].index()]) continue;
      storage = storage_of_[compute.inputs[saved.index].index()];
    } else if (saved.what == Saved::What::output && saved.index < compute.outputs.size())
      storage = storage_of_[compute.outputs[saved.index].index()];
    hold(storage);
    held().saved[step].push_back(storage);
  }
}

void StepWalk::keep_inputs(std::size_t segment) {
  for (const LocalTensorId in : segments_[segment].inputs) {
    hold(storage_of_[in.index()]);
    held().segments[segment].push_back(storage_of_[in.index()]);
  }
}

bool StepWalk::lies_outside(std::size_t segment, LocalTensorId id) const {
  return !stage_.kept_outside.empty() && std::ranges::count(stage_.kept_outside[segment], id) > 0;
}

// Which of a segment's inputs go out: they are copied while it runs.
void StepWalk::leave_inputs(std::size_t segment) {
  for (std::size_t n = 0; n < segments_[segment].inputs.size(); ++n) {
    if (!lies_outside(segment, segments_[segment].inputs[n])) continue;
    release(held().segments[segment][n]);
    held().segments[segment][n] = Storages::none;
  }
}

// And come again, for the nearest segment before this one.
void StepWalk::bring_before(std::size_t segment) {
  const std::size_t s = outside_before(stage_, segment);
  if (s == segment) return;
  for (std::size_t n = 0; n < segments_[s].inputs.size(); ++n) {
    const LocalTensorId in = segments_[s].inputs[n];
    if (!lies_outside(s, in)) continue;
    held().segments[s][n] = allocate(bytes_of(in), activations, owner(What::tensor, in));
    hold(held().segments[s][n]);
  }
}

// Runs a segment again, now saving what backward needs. What it was made from, its results and their gradients stay
// until its backward is over.
void StepWalk::replay(std::size_t segment) {
  const Segment& range = stage_.recomputed[segment];
  const std::vector<LocalTensorId>&inputs = segments_[segment].inputs, &outputs = segments_[segment].outputs;
  std::vector<int> uses(stage_.tensors.size(), 0);
  for (std::size_t i = range.begin; i < range.end; ++i)
    for (const LocalTensorId in : facts_[i].inputs)
      if (in.valid()) ++uses[in.index()];
  std::vector<std::size_t> current;
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    current.push_back(storage_of_[inputs[n].index()]);
    storage_of_[inputs[n].index()] = held().segments[segment][n];
    hold(held().segments[segment][n]);  // for the program, which releases it after the last consumer
  }
  for (const LocalTensorId out : outputs) {
    ++uses[out.index()];
    hold(gradient_of_[out.index()]);
    held().segments[segment].push_back(gradient_of_[out.index()]);
  }
  for (std::size_t i = range.begin; i < range.end; ++i) run(i, uses, true);
  for (const LocalTensorId out : outputs) held().segments[segment].push_back(storage_of_[out.index()]);
  // The program has the next micro-batch's inputs by now, which it lets go of when those after them come.
  for (std::size_t n = 0; n < inputs.size(); ++n)
    if (stage_[inputs[n]].kind == TensorKind::input) storage_of_[inputs[n].index()] = current[n];
}

void StepWalk::end_segment(std::size_t segment) {
  for (const std::size_t storage : held().segments[segment]) release(storage);
  held().segments[segment].clear();
}

double StepWalk::own_part(std::size_t unit) const {
  return static_cast<double>(part_bytes(stage_, stage_.units[unit].sync, stage_.units[unit].bucket));
}

void StepWalk::bring(std::size_t unit) {
  if (stage_.parameter_tier == Tier::device || gathered_[unit] || brought_[unit]) return;
  ledger_.take(weights, own_part(unit), owner(What::unit, unit));
  brought_[unit] = true;
}

// What came from outside is dropped once it lies in what is gathered.
void StepWalk::gather(std::size_t unit) {
  if (unit >= stage_.units.size() || gathered_[unit]) return;
  bring(unit);
  ledger_.take(weights, unit_bytes(unit), owner(What::unit, unit));
  gathered_[unit] = true;
  if (!brought_[unit]) return;
  ledger_.give(weights, own_part(unit), owner(What::unit, unit));
  brought_[unit] = false;
}

double StepWalk::gradient_bytes(LocalTensorId parameter) const {
  return static_cast<double>(element_count(stage_[parameter].shape)) * size_in_bytes(stage_[parameter].gradient_type());
}

double StepWalk::sum_bytes(LocalTensorId id) const {
  const bool first = stage_[id].kind == TensorKind::parameter && gradient_of_[id.index()] == Storages::none;
  return first ? gradient_bytes(id) : bytes_of(id);
}

double StepWalk::unit_bytes(std::size_t unit) const {
  const ParameterUnit& u = stage_.units[unit];
  return static_cast<double>(stage_.gradients[u.sync].buckets[u.bucket].parameter_bytes());
}

// Together with the next ones, which are on their way: among the same ranks, who gather one after the other. Of the one
// behind them the rank's part is.
void StepWalk::enter_unit(std::size_t unit, bool forwards) {
  gather(unit);
  const ParameterUnit& own = stage_.units[unit];
  int ahead = forwards ? own.ahead : own.ahead_backward;
  for (std::size_t u = unit; ahead >= 0 && (forwards ? ++u < stage_.units.size() : u-- > 0);) {
    if (stage_.units[u].sync != own.sync) continue;
    if (ahead-- > 0)
      gather(u);
    else
      bring(u);
  }
}

void StepWalk::leave(std::size_t unit) {
  if (gathered_[unit]) ledger_.give(weights, unit_bytes(unit), owner(What::unit, unit));
  gathered_[unit] = false;
}

}  // namespace sibyl

#include "oracle/simulate/step_program.h"

#include <algorithm>
#include <utility>

#include "oracle/plan/offload_activations.h"
#include "oracle/plan/zero.h"
#include "oracle/simulate/offload.h"

namespace sibyl {
namespace {

class ProgramBuilder {
 public:
  ProgramBuilder(const Stage& stage, const PricedStage& priced, const Relief& relief)
      : stage_(stage),
        priced_(priced),
        relief_(relief),
        gathered_(stage.units.size(), 0),
        parts_(stage.units.size(), 0),
        brought_(stage.recomputed.size(), 0) {
    std::size_t first = 0;
    for (const GradientSync& sync : stage.gradients) {
      buckets_.push_back({first, first + sync.buckets.size()});
      first += sync.buckets.size();
    }
  }

  StepProgram build(const Cancelled& cancelled) {
    const std::size_t turns = stage_.schedule.size();
    for (std::size_t t = 0; t < turns && !is_true(cancelled); ++t)
      add_turn(stage_.schedule[t], {stage_.schedule[t].micro_batch == 0, t + 1 == turns});
    send_buckets(0);
    add_tail();
    return std::move(program_);
  }

  // Of one turn alone, with the messages that it hands out; no tail.
  StepProgram build(Turn turn, Place place) {
    add_turn(turn, place);
    const bool closes = turn.kind == Turn::Kind::backward || turn.kind == Turn::Kind::backward_weight;
    if (place.last && closes) send_buckets(0);
    program_.needed_copies = needed_copies_;
    return std::move(program_);
  }

  StepProgram tail() {
    add_tail();
    return std::move(program_);
  }

 private:
  [[nodiscard]] Seconds time(StageKernels::Index key) const {
    const bool arithmetic = priced_.prices[key].bound == Bound::compute;
    return priced_.time(key) * (arithmetic ? relief_.compute_bound : relief_.memory_bound);
  }
  [[nodiscard]] Seconds sum(const std::vector<StageKernels::Index>& keys) const {
    Seconds total;
    for (const auto key : keys) total += time(key);
    return total;
  }

  void add_tail() {
    const StageKernels& kernels = priced_.kernels;
    program_.copies_back = sum(kernels.decompressions) + sum(kernels.copies_back);
    program_.tail_launches =
        static_cast<double>(kernels.decompressions.size() + kernels.copies_back.size()) * priced_.bare_launch;
    for (const auto* work : {&kernels.masters, &kernels.unscale, &kernels.norms, &kernels.clips, &kernels.updates}) {
      program_.tail += sum(*work);
      program_.tail_launches += static_cast<double>(work->size());
    }
    program_.tail += program_.copies_back;
    if (stage_.clip && std::ranges::count(stage_.clip->axes, MeshAxis::pipeline) > 0)
      program_.norm = program_.copies_back + sum(kernels.unscale) + sum(kernels.norms);
    for (const auto& norm : {priced_.clip_norm, priced_.tensor_norms})
      if (norm) program_.tail_messages += norm->time.time;
    for (const PricedMessage& gather : priced_.gathers) program_.tail_messages += gather.estimate.time.time;
    program_.tail_messages *= relief_.network;
    if (stage_.copies.empty()) return;
    const OffloadedUpdates moved = offloaded_updates(stage_, priced_, relief_);
    program_.copies_waited = moved.waited;
    for (const PricedCopy& copy : priced_.copies) program_.tail_copies += copy.estimate.time * relief_.offload;
  }

  void send(const PricedMessage& message, StepProgram::Sent what) {
    const std::size_t after = program_.tasks.empty() ? Message::at_once : program_.tasks.size() - 1;
    program_.messages.push_back({message.estimate.time.time * relief_.network, after, message.wire});
    program_.sent.push_back(what);
  }

  // Each as soon as the step before which it is complete has run backward, those of one group in their order (a bucket
  // of one group does not wait for another's: they have communicators of their own); those that do not overlap at the
  // end. Those of parameters that other stages hold too are not the stage's own to send.
  void send_buckets(std::size_t step) {
    const auto complete = [&](const PricedMessage& m) { return step == 0 || (m.overlapped && m.ready_after >= step); };
    for (auto& [next, end] : buckets_)
      for (; next < end && complete(priced_.messages[next]); ++next)
        if (priced_.messages[next].stages.empty()) send(priced_.messages[next], {false, next});
  }

  // The rank's part of a unit, if it lies outside.
  void bring(std::size_t unit) {
    if (priced_.brought.empty() || unit >= stage_.units.size() || gathered_[unit] != 0 || parts_[unit] != 0) return;
    parts_[unit] = copy(priced_.brought[unit], {true, unit, OffloadCopy::Way::in});
  }

  // Nothing of it is sent before the rank's part is here.
  void gather(std::size_t unit) {
    if (unit >= stage_.units.size() || gathered_[unit] != 0) return;
    bring(unit);
    needed_copies_ = std::max(needed_copies_, std::exchange(parts_[unit], 0));
    const bool copied = !priced_.kernels.unit_copies.empty();
    if (copied || !priced_.brought.empty()) {
      add(copied ? time(priced_.kernels.unit_copies[unit]) : Seconds{}, copied ? 1 : 0, stage_.units[unit].begin);
      program_.origins.back().unit = unit;
    }
    send(priced_.unit_gathers[unit], {true, unit});
    gathered_[unit] = program_.messages.size();
  }

  // The unit's first task waits until it is gathered; the next ones are then on their way, and the rank's part of the
  // one behind them.
  void enter(std::size_t unit, bool forward) {
    gather(unit);
    needed_ = std::max(needed_, gathered_[unit]);
    const ParameterUnit& own = stage_.units[unit];
    const auto ahead = static_cast<std::size_t>(forward ? own.ahead : own.ahead_backward);
    for (std::size_t n = 1; n <= ahead; ++n)
      if (forward || n <= unit) gather(forward ? unit + n : unit - n);
    if (forward || ahead < unit) bring(forward ? unit + ahead + 1 : unit - ahead - 1);
  }

  void leave(std::size_t unit) { gathered_[unit] = 0; }

  // The unit behind which none is gathered ahead, when those before it have run, ahead of their gradients.
  void gather_late(std::size_t step) {
    for (std::size_t u = stage_.units.size(); u-- > 0;)
      if (stage_.units[u].end == step && stage_.units[u].ahead_backward == 0) gather(u);
  }

  // The number of copies so far, with it.
  std::size_t copy(std::size_t segment, OffloadCopy::Way way) {
    const PricedStage::Kept& kept = priced_.kept[segment];
    return copy(way == OffloadCopy::Way::out ? kept.out : kept.in, {false, segment, way});
  }
  std::size_t copy(const PricedCopy& priced, StepProgram::Moved what) {
    const std::size_t after = program_.tasks.empty() ? Message::at_once : program_.tasks.size() - 1;
    program_.copies.push_back({priced.estimate.time * relief_.offload, after});
    program_.moved.push_back(what);
    return program_.copies.size();
  }
  // The nearest before `segment` is on its way from here on.
  void bring_before(std::size_t segment) {
    if (const std::size_t s = outside_before(stage_, segment); s != segment)
      brought_[s] = copy(s, OffloadCopy::Way::in);
  }
  [[nodiscard]] bool lies_outside(std::size_t segment) const {
    return !stage_.kept_outside.empty() && !stage_.kept_outside[segment].empty();
  }
  // What a segment keeps leaves while it runs; nothing behind it runs before that is out.
  void leave_kept(std::size_t step, bool begins) {
    for (std::size_t s = 0; s < stage_.recomputed.size(); ++s) {
      if (!lies_outside(s)) continue;
      if (begins && stage_.recomputed[s].begin == step) leaving_ = copy(s, OffloadCopy::Way::out);
      if (!begins && stage_.recomputed[s].end == step + 1) needed_copies_ = std::max(needed_copies_, leaving_);
    }
  }

  // `launches`: in dispatches.
  void add(Seconds duration, double launches, std::size_t step, bool again = false) {
    program_.tasks.push_back({duration, priced_.dispatch * launches * relief_.host, needed_, needed_copies_});
    program_.origins.push_back({step, turn_, false, again});
    (turn_.kind == Turn::Kind::forward ? program_.forward : program_.backward) += duration;
  }

  // Computation waits for it as for a kernel of its own, and the host issues it as one.
  void exchange(const std::optional<CollectiveEstimate>& transfer, const WireUse& wire, Seconds wait, Seconds hidden,
                std::size_t step, bool again = false) {
    if (!transfer) return;
    program_.hidden += hidden * relief_.network;
    const Seconds sent = transfer->time.time * relief_.network;
    program_.tasks.push_back({wait + sent, priced_.dispatch * relief_.host, needed_, needed_copies_, wire, wait});
    program_.origins.push_back({step, turn_, true, again});
  }

  void add_turn(Turn turn, Place place) {
    turn_ = turn;
    if (turn.kind == Turn::Kind::forward) return forward();
    backward(place);
    if (stage_.reduces_each && !place.last) reduce();
  }

  // All of a micro-batch's gradients, before the next one begins.
  void reduce() {
    send_buckets(0);
    std::size_t first = 0;
    for (Buckets& buckets : buckets_) buckets.next = std::exchange(first, buckets.end);
    needed_ = program_.messages.size();
    add(sum(priced_.kernels.part_sums), static_cast<double>(priced_.kernels.part_sums.size()) * priced_.bare_launch, 0);
    program_.origins.back().sums = true;
  }

  void forward() {
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
      for (std::size_t u = 0; u < stage_.units.size(); ++u)
        if (stage_.units[u].begin == i) enter(u, true);
      leave_kept(i, true);
      forward(i, false);
      leave_kept(i, false);
      for (std::size_t u = 0; u < stage_.units.size(); ++u)
        if (stage_.units[u].end == i + 1 && !stays_gathered(stage_, stage_.units[u])) leave(u);
    }
  }

  void forward(std::size_t step, bool again) {
    const PricedExchange& own = priced_.exchanges[step];
    exchange(own.forward, own.forward_wire, own.wait.forward, own.hidden_forward, step, again);
    if (const auto kernel = priced_.kernels.steps[step].forward)
      add(time(*kernel) + priced_.overhead * relief_.host, 1, step, again);
  }

  void backward(Place place) {
    const bool inputs = turn_.kind != Turn::Kind::backward_weight;
    if (inputs) bring_before(stage_.recomputed.size());
    for (std::size_t i = stage_.steps.size(); i-- > 0;) {
      for (std::size_t u = stage_.units.size(); inputs && u-- > 0;)  // gradients of weights read no parameter
        if (stage_.units[u].end == i + 1) enter(u, false);
      for (std::size_t s = 0; s < stage_.recomputed.size(); ++s)
        if (inputs && stage_.recomputed[s].end == i + 1) run_again(s);
      const PricedExchange& own = priced_.exchanges[i];
      if (inputs) exchange(own.backward, own.backward_wire, own.wait.backward, own.hidden_backward, i);
      differentiate(i, place);
      for (std::size_t u = 0; u < stage_.units.size(); ++u)
        if (stage_.units[u].begin == i) leave(u);
      if (inputs) gather_late(i);
      if (reduces(place) && i > 0 && turn_.kind != Turn::Kind::backward_input) send_buckets(i);
    }
  }

  void run_again(std::size_t segment) {
    if (lies_outside(segment)) {
      needed_copies_ = std::max(needed_copies_, brought_[segment]);
      bring_before(segment);
    }
    for (std::size_t s = stage_.recomputed[segment].begin; s < stage_.recomputed[segment].end; ++s) forward(s, true);
  }

  [[nodiscard]] bool reduces(Place place) const { return place.last || stage_.reduces_each; }

  // A backward in one turn is both its parts.
  void differentiate(std::size_t step, Place place) {
    const StageKernels::OfStep& kernels = priced_.kernels.steps[step];
    const bool inputs = turn_.kind != Turn::Kind::backward_weight, weights = turn_.kind != Turn::Kind::backward_input;
    Seconds duration;
    double launches = 0;
    const auto run = [&](const std::vector<StageKernels::Index>& keys) {
      duration += sum(keys);
      launches += static_cast<double>(keys.size()) * priced_.bare_launch;
    };
    if (inputs) {
      if (kernels.backward) duration += time(*kernels.backward), ++launches;
      run(kernels.sums);
    }
    if (weights) {
      if (kernels.backward_weight) duration += time(*kernels.backward_weight), ++launches;
      run(kernels.parameter_casts);
      if (!place.first) run(kernels.parameter_sums);
      if (reduces(place)) run(kernels.bucket_copies), run(kernels.compressions);
    }
    if (launches > 0) add(duration, launches, step);
  }

  const Stage& stage_;
  const PricedStage& priced_;
  Relief relief_;
  Turn turn_;
  struct Buckets {
    std::size_t next, end;  // of priced_.messages
  };
  std::vector<Buckets> buckets_;       // of each group that gradients are summed over
  std::vector<std::size_t> gathered_;  // by unit: the number of messages sent with it; 0: it is not gathered
  std::vector<std::size_t> parts_;  // by unit: the number of copies with its part that lies outside; 0: not on its way
  std::size_t needed_ = 0;             // messages that tasks to come wait for
  std::vector<std::size_t> brought_;   // by segment: the number of copies with that which brings what it keeps
  std::size_t leaving_ = 0, needed_copies_ = 0;  // the number with the last one out; that tasks to come wait for
  StepProgram program_;
};

}  // namespace

StepProgram step_program(const Stage& stage, const PricedStage& priced, const Relief& relief,
                         const Cancelled& cancelled) {
  return ProgramBuilder(stage, priced, relief).build(cancelled);
}

StepProgram turn_program(const Stage& stage, const PricedStage& priced, const Relief& relief, Turn turn, Place place) {
  return ProgramBuilder(stage, priced, relief).build(turn, place);
}

StepProgram tail_program(const Stage& stage, const PricedStage& priced, const Relief& relief) {
  return ProgramBuilder(stage, priced, relief).tail();
}

}  // namespace sibyl

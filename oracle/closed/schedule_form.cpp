#include "oracle/closed/schedule_form.h"

#include <algorithm>
#include <tuple>

namespace sibyl::closed {
namespace {

// As turn_delay() and send_delay() have them.
PassFacts::Loss lost_to_messages(double flows, double held_up, double own_flows, double time) {
  if (held_up <= 0 || flows <= 0) return {};
  const double most = held_up * flows / own_flows;
  return {most / (time + most), most};
}
PassFacts::Loss lost_by_message(const WireUse& message, const TurnWires& turn, double time) {
  const WireTime::OnOne& busy = turn.busy.on[wire_of(message)];
  if (busy.seconds <= 0) return {};
  const double share = std::min(1.0, busy.seconds / time);
  return {share / (1 - share + share * message.flows / busy.flows), busy.seconds};
}

}  // namespace

void ScheduleForm::prepare(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages) {
  coordinates_ = static_cast<std::size_t>(shape.coordinates);
  interleaved_ = shape.schedule == PipelineSchedule::interleaved;
  split_ = shape.schedule == PipelineSchedule::zero_bubble;
  stages_ = stages;
  crowded_ = false;
  if (3 * turns_of_a_round(stages_.size(), coordinates_) <= turns_followed) {  // else they count for none (crowded())
    find_sends();
    crowded_ = crowded(sends_, coordinates_);
  }
  sharing_ = crowded_ || share();
}

void ScheduleForm::find_sends() {
  sends_.clear();
  for (const StageInPipeline& s : stages_)
    sends_.push_back(
        {sent_by(s.send_forward, s.forward_wire, s.forward_passage),
         sent_by(s.send_backward, s.backward_wire, s.backward_passage),
         s.form->forward.time + s.form->backward[slot_of(false, false)].time + (split_ ? s.form->input.time : 0.0)});
}

void ScheduleForm::number_passes(const ScheduleShape& shape) {
  const int passes = shape.micro_batches * shape.chunks;
  const auto inner = static_cast<std::uint32_t>(slot_of(false, false));
  const auto first = static_cast<std::uint32_t>(slot_of(true, shape.micro_batches == 1));
  const auto last = static_cast<std::uint32_t>(slot_of(shape.micro_batches == 1, true));
  passes_.clear();
  passes_.reserve(static_cast<std::size_t>(passes));
  // Of as many micro-batches as there are coordinates all go through a chunk before the first goes through the next.
  for (int begin = 0; begin < shape.micro_batches; begin += shape.coordinates)
    for (int nth = 0; nth < shape.chunks; ++nth) {
      const int end = std::min(begin + shape.coordinates, shape.micro_batches);
      passes_.insert(passes_.end(), static_cast<std::size_t>(end - begin),
                     PassOf{static_cast<std::uint32_t>(nth * shape.coordinates),
                            static_cast<std::uint32_t>((shape.chunks - 1 - nth) * shape.coordinates), inner});
      if (begin == 0) passes_[passes_.size() - static_cast<std::size_t>(end)].slot = first;
      if (end == shape.micro_batches) passes_.back().slot = last;
    }
  lead_ = shape.coordinates - 1;
  if (interleaved_) lead_ = interleaved_warm_up(shape, 0);
  if (shape.schedule == PipelineSchedule::gpipe) lead_ += passes;
}

void ScheduleForm::walk(const ScheduleShape& shape, const std::vector<double>& begins, int spaced) {
  number_passes(shape);
  free_ = begins;
  backwards_.assign(coordinates_, 0.0);
  forwards_ = begins;
  std::rotate(forwards_.begin(), forwards_.begin() + 1, forwards_.end());
  wires_.assign(coordinates_, {});
  gradients_.assign(coordinates_, {});
  last_gradients_ = 0;
  if (crowded_) lost_ = lost_between_nodes(shape);
  sent_.assign(coordinates_, {});
  const int rounds_apart = spaced * shape.coordinates * shape.chunks;
  if (goes_many_at_once(shape))
    walk_many_at_once(shape, rounds_apart);
  else
    walk_by_rounds(rounds_apart);
  if (spaced > 0) compare(spaced);
  for (std::size_t i = 1; split_ && i < coordinates_; ++i) put_off_weights(i);
}

void ScheduleForm::walk_by_rounds(int apart) {
  const int passes = static_cast<int>(passes_.size());
  for (int e = 0; e < passes + lead_; ++e) {
    forward_passes(e);
    backward_passes(e);
    if (apart > 0 && e == passes - 1 - apart) before_ = state();
    if (apart > 0 && e == passes - 1) after_ = state();
  }
}

bool ScheduleForm::find_flows() {
  flows_.assign(coordinates_, {});
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const StageInPipeline& stage = stages_[s];
    CoordinateFlows& flows = flows_[s % coordinates_];
    for (const auto& [send, wire, way] : {std::tuple{stage.send_forward, &stage.forward_wire, &flows.forward},
                                          std::tuple{stage.send_backward, &stage.backward_wire, &flows.backward}}) {
      if (send == 0) continue;
      double& known = flows.on[wire_of(*wire)];
      if (known != 0 && known != wire->flows) return false;
      if (*way != nullptr && wire_of(**way) != wire_of(*wire)) return false;
      known = wire->flows;
      *way = wire;
    }
  }
  return true;
}

bool ScheduleForm::goes_many_at_once(const ScheduleShape& shape) {
  if (crowded_) return false;
  if (interleaved_ && (shape.coordinates < 3 || (sharing_ && shape.micro_batches < 2 * shape.coordinates)))
    return false;
  return !sharing_ || find_flows();
}

TimesAlone ScheduleForm::times_of(const StageInPipeline& stage) const {
  const StageForm& form = *stage.form;
  const double backward = form.backward[slot_of(false, false)].time;
  const double first = form.backward[slot_of(true, passes_.size() == 1)].time;
  if (!split_) return {form.forward.time, backward, first, stage.send_forward, stage.send_backward};
  const double input = form.input.time;
  return {form.forward.time, input, input, stage.send_forward, stage.send_backward, backward, first};
}

StageFacts ScheduleForm::facts_of(const StageInPipeline& stage, std::size_t coordinate) const {
  const TimesAlone times = times_of(stage);
  StageFacts facts;
  facts.forward.time = times.forward;
  facts.backward.time = times.backward;
  facts.first_backward.time = times.first_backward;
  facts.weights = times.weights;
  facts.sent_forward.alone = times.sent_forward;
  facts.sent_backward.alone = times.sent_backward;
  if (!sharing_) return facts;
  const auto send = [](double alone, const WireUse& wire, MessageFacts& message) {
    if (alone == 0) return;
    message.on_wire = alone * wire.busy;
    message.rest[wire_of(wire)] = alone * (1 - wire.busy);
  };
  send(stage.send_forward, stage.forward_wire, facts.sent_forward);
  send(stage.send_backward, stage.backward_wire, facts.sent_backward);
  const CoordinateFlows& flows = flows_[coordinate];
  const auto share = [&](const TurnWires& wires, PassFacts& pass) {
    for (std::size_t wire = 0; wire < wire_count; ++wire)
      pass.to_messages[wire] =
          lost_to_messages(flows.on[wire], wires.held_up[wire], wires.busy.on[wire].flows, pass.time);
    if (flows.forward) pass.of_forward = lost_by_message(*flows.forward, wires, pass.time);
    if (flows.backward) pass.of_backward = lost_by_message(*flows.backward, wires, pass.time);
  };
  share(stage.form->wires_forward, facts.forward);
  share(stage.form->wires_backward, facts.backward);
  share(stage.form->wires_backward, facts.first_backward);
  return facts;
}

template <class Step, class Go>
void ScheduleForm::walk_with(Step& step, int apart, const Go& go) {
  const auto put = [&](std::size_t c) {
    step.set_state(c, {free_[c], forwards_[c], backwards_[c], {wires_[c][0].until, wires_[c][1].until}});
  };
  const auto take = [&](std::size_t c) {
    const CoordinateState state = step.state(c);
    free_[c] = state.ready, forwards_[c] = state.forward, backwards_[c] = state.backward;
    for (std::size_t wire = 0; sharing_ && wire < wire_count; ++wire) wires_[c][wire].until = state.until[wire];
  };
  for (std::size_t c = 0; c < coordinates_; ++c) {
    for (std::size_t wire = 0; sharing_ && wire < wire_count; ++wire) wires_[c][wire].flows = flows_[c].on[wire];
    put(c);
  }
  constexpr int never = -1;
  const int after = apart > 0 ? step.last_forward() : never, last = step.ticks() - 1;
  const int before = apart > 0 ? after - Step::ticks_of(apart) : never;
  for (int tick = 0; tick <= last; ++tick) {
    const Reached reached = go(tick, tick <= before ? before : tick <= after ? after : last);
    for (const SinglePass& single : reached.singles) {
      take(single.coordinate);
      backward_pass(single.coordinate, single.pass, single.arrived);
      put(single.coordinate);
    }
    tick = reached.tick;
    if (tick != before && tick != after) continue;
    for (std::size_t c = 0; c < coordinates_; ++c) take(c);
    (tick == before ? before_ : after_) = state();
  }
  for (std::size_t c = 0; c < coordinates_; ++c) take(c);
}

void ScheduleForm::walk_many_at_once(const ScheduleShape& shape, int apart) {
  const bool within =
      sharing_ && std::ranges::any_of(flows_, [](const CoordinateFlows& flows) { return flows.on[0] != 0; });
  if (interleaved_) {
    interleaved_step_.begin({shape.coordinates, shape.chunks, shape.micro_batches, lead_, sharing_, within});
    for (std::size_t s = 0; s < stages_.size(); ++s)
      interleaved_step_.set_stage(s, facts_of(stages_[s], s % coordinates_));
    walk_with(interleaved_step_, apart, [&](int round, int) {
      return Reached{round, interleaved_step_.go(round, apart_ ? 0.0 : last_gradients_)};
    });
  } else {
    const bool forward_first = shape.schedule == PipelineSchedule::gpipe;
    lock_step_.begin(coordinates_, {shape.micro_batches, forward_first, split_, sharing_, within});
    for (std::size_t c = 0; c < coordinates_; ++c) {
      if (sharing_)
        lock_step_.set_stage(c, facts_of(stages_[c], c));
      else
        lock_step_.set_times(c, times_of(stages_[c]));
    }
    walk_with(lock_step_, apart, [&](int tick, int last) { return lock_step_.go(tick, last); });
  }
}

// All that the next round looks at. A wire over which nothing was sent yet stays out of it.
std::vector<std::vector<double>> ScheduleForm::state() const {
  std::vector<std::vector<double>> all{free_, forwards_, backwards_};
  for (std::size_t wire = 0; sharing_ && wire < wires_.front().size(); ++wire) {
    all.push_back(free_);
    for (std::size_t i = 0; i < coordinates_; ++i)
      if (wires_[i][wire].until > 0) all.back()[i] = wires_[i][wire].until;
  }
  return all;
}

void ScheduleForm::compare(int rounds) {
  least_ = most_ = (after_[0][0] - before_[0][0]) / rounds;
  for (std::size_t k = 0; k < after_.size(); ++k)
    for (std::size_t i = 0; i < coordinates_; ++i) {
      least_ = std::min(least_, (after_[k][i] - before_[k][i]) / rounds);
      most_ = std::max(most_, (after_[k][i] - before_[k][i]) / rounds);
    }
}

// Is there a coordinate that sends over a wire that its exchanges use, too?
bool ScheduleForm::share() const {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const StageForm& own = *stages_[s].form;
    for (std::size_t t = s % coordinates_; t < stages_.size(); t += coordinates_)
      for (const auto& [send, wire] : {std::pair{stages_[t].send_forward, wire_of(stages_[t].forward_wire)},
                                       std::pair{stages_[t].send_backward, wire_of(stages_[t].backward_wire)}})
        if (send > 0 && (own.wires_forward.busy.on[wire].seconds > 0 || own.wires_backward.busy.on[wire].seconds > 0))
          return true;
  }
  return false;
}

LostToOthers ScheduleForm::lost_between_nodes(const ScheduleShape& shape) const {
  const Result<Turns> turns = make_schedule(shape.schedule, {shape.coordinates, shape.chunks, shape.micro_batches});
  return lost_to_others(*turns, sends_, shape.micro_batches, [&](const Turn& turn) {
    const StageInPipeline& stage = stages_[static_cast<std::size_t>(turn.stage)];
    if (turn.kind == Turn::Kind::forward) return stage.form->forward.time;
    if (turn.kind == Turn::Kind::backward_input) return stage.form->input.time;
    return stage.form->backward[slot_of(turn.micro_batch == 0, turn.micro_batch + 1 == shape.micro_batches)].time;
  });
}

void ScheduleForm::send(std::size_t coordinate, const StageInPipeline& stage, bool forward, const Beside& beside) {
  double& channel = (forward ? forwards_ : backwards_)[coordinate];
  const double alone = forward ? stage.send_forward : stage.send_backward;
  const WireUse& wire = forward ? stage.forward_wire : stage.backward_wire;
  const double start = std::max(channel, free_[coordinate]);
  channel = start + alone;
  if (alone == 0) return;
  if (crowded_) channel += lost_.at(coordinate, forward, sent_[coordinate][forward ? 0 : 1]++);
  if (!apart_) channel += gradients_[coordinate].delay_send(start, alone * wire.busy, wire);
  if (!sharing_) return;
  if (beside.wires != nullptr)
    channel += send_delay(alone * wire.busy, wire.flows, beside.wires->busy.on[wire_of(wire)], beside.time);
  OnWire& on = wires_[coordinate][wire_of(wire)];
  on = {std::max(on.until, channel - alone * (1 - wire.busy)), wire.flows};
}

// Each finds what the one before it sent a round ago. Behind its last pass forward comes the first one backward,
// however much later.
void ScheduleForm::forward_passes(int round) {
  const double around = forwards_.back();
  for (std::size_t i = coordinates_; i-- > 0;) {
    const StageInPipeline* stage = forward_in(round, i);
    if (stage == nullptr) continue;
    const bool enters = stage == stages_.data();
    const double start = std::max(free_[i], i > 0 ? forwards_[i - 1] : enters ? 0.0 : around);
    const StageForm& own = *stage->form;
    free_[i] = start + own.forward.time + turn_delay(start, wires_[i], own.wires_forward, own.forward.time);
    const StageInPipeline* next = forward_in(round + 1, i);
    std::optional<std::size_t> backward = backward_in(round, i);
    if (!backward && next == nullptr) backward = 0;
    Beside beside;
    if (backward) {
      next = &stages_[passes_[*backward].backward + i];
      beside = {&next->form->wires_backward, backward_time(*next, *backward)};
    } else {
      beside = {&next->form->wires_forward, next->form->forward.time};
    }
    send(i, *stage, true, beside);
  }
}

void ScheduleForm::backward_passes(int round) {
  const int passes = static_cast<int>(passes_.size()), first = round - lead_;  // the pass of the first coordinate
  if (interleaved_) return interleaved_backward_passes(first);
  if (first < 0 || first >= passes) return;
  for (std::size_t at = coordinates_; at-- > 0;)  // and in this one
    backward_pass(at, static_cast<std::size_t>(first), at + 1 < coordinates_ ? backwards_[at + 1] : 0.0);
}

// Each finds what the next coordinate sent a round ago.
void ScheduleForm::interleaved_backward_passes(int first) {
  const int passes = static_cast<int>(passes_.size()), coordinates = static_cast<int>(coordinates_);
  const double around = backwards_.front();
  for (int i = std::max(0, -first); i <= std::min(coordinates - 1, passes - 1 - first); ++i) {
    const auto at = static_cast<std::size_t>(i), now = static_cast<std::size_t>(first + i);
    const bool ends = passes_[now].backward + at + 1 == stages_.size();
    backward_pass(at, now, ends ? 0.0 : at + 1 < coordinates_ ? backwards_[at + 1] : around);
  }
}

void ScheduleForm::backward_pass(std::size_t coordinate, std::size_t pass, double arrival) {
  const PassOf& of = passes_[pass];
  const StageInPipeline& stage = stages_[of.backward + coordinate];
  const StageForm& form = *stage.form;
  const double time = backward_time(stage, pass), start = std::max(free_[coordinate], arrival);
  const double delay = (sharing_ ? turn_delay(start, wires_[coordinate], form.wires_backward, time) : 0.0) +
                       (apart_ ? 0.0 : gradients_[coordinate].delay_turn(start, form.wires_backward, time));
  free_[coordinate] = start + time + delay;
  if (!split_ && is_last(of.slot)) exchange(coordinate, form, start + delay + form.backward[of.slot].messages);
  Beside beside;  // behind backward passes alone each mostly waits for its neighbour first
  if (sharing_ && !(split_ && pass >= coordinate)) {
    const int round = static_cast<int>(pass) + lead_ - (interleaved_ ? static_cast<int>(coordinate) : 0);
    if (const StageInPipeline* next = forward_in(round + 1, coordinate))
      beside = {&next->form->wires_forward, next->form->forward.time};
  }
  send(coordinate, stage, false, beside);
  if (split_ && pass >= coordinate) weight_pass(coordinate, pass - coordinate);
}

// As the walk has it: the wire is the coordinate's.
void ScheduleForm::exchange(std::size_t coordinate, const StageForm& form, double alone) {
  GradientsUnderWay& others = gradients_[coordinate];
  const double behind = form.messages > 0 ? others.end() + form.messages : 0.0;
  others.add(std::max(behind, alone), form.messages, form.wires_messages);
  last_gradients_ = std::max(last_gradients_, others.end());
}

// As many as there are coordinates before it, of which only the first and the last micro-batch's are not like the
// others.
void ScheduleForm::put_off_weights(std::size_t coordinate) {
  const std::size_t last = passes_.size() - 1;
  std::size_t next = passes_.size() - std::min(coordinate, passes_.size());
  if (next == 0 && last > 0) weight_pass(coordinate, next++);
  const StageForm& form = *stages_[coordinate].form;
  free_[coordinate] += static_cast<double>(last - next) * form.backward[slot_of(false, false)].time;
  weight_pass(coordinate, last);
}

void ScheduleForm::weight_pass(std::size_t coordinate, std::size_t pass) {
  const StageForm& form = *stages_[coordinate].form;
  const StageForm::Turns& turns = form.backward[passes_[pass].slot];
  if (is_last(passes_[pass].slot)) exchange(coordinate, form, free_[coordinate] + turns.messages);
  free_[coordinate] += turns.time;
}

void ScheduleForm::finish(const std::vector<StageInPipeline>& stages, const LastMessages& last) {
  for (std::size_t c = 0; c < coordinates_; ++c) free_[c] = std::max(free_[c], gradients_[c].end());
  ends_ = free_;
  for (const TiedMessage& message : last.tied) {
    double ready = 0;
    for (const int s : message.stages) ready = std::max(ready, free_[static_cast<std::size_t>(s) % coordinates_]);
    for (const int s : message.stages) {
      double& own = ends_[static_cast<std::size_t>(s) % coordinates_];
      own = std::max(own, ready) + message.seconds;
    }
  }
  const auto add = [&](double StageForm::*part, double sign) {
    for (std::size_t c = 0; c < coordinates_; ++c)
      for (std::size_t s = c; s < stages.size(); s += coordinates_) ends_[c] += sign * stages[s].form->*part;
  };
  if (last.clip_norm) {  // all wait for the last one's share
    add(&StageForm::norm, 1);
    std::ranges::fill(ends_, std::ranges::max(ends_) + *last.clip_norm);
    add(&StageForm::norm, -1);
  }
  add(&StageForm::tail, 1);
}

double ScheduleForm::at_least(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages) {
  const bool split = shape.schedule == PipelineSchedule::zero_bubble;
  const int micro_batches = shape.micro_batches;
  const auto coordinates = static_cast<std::size_t>(shape.coordinates);
  const std::size_t last = slot_of(micro_batches == 1, true);
  const auto backward = [&](const StageForm& form) {  // of all micro-batches
    double sum = form.backward[last].time;
    if (micro_batches > 1) sum += form.backward[slot_of(true, false)].time;
    if (micro_batches > 2) sum += form.backward[slot_of(false, false)].time * (micro_batches - 2);
    return sum;
  };
  double least = 0, before = 0, after = 0;
  for (std::size_t c = 0; c < coordinates; ++c) {
    double own = 0, tail = 0;
    for (std::size_t s = c; s < stages.size(); s += coordinates) {
      const StageForm& form = *stages[s].form;
      own += (form.forward.time + (split ? form.input.time : 0.0)) * micro_batches + backward(form);
      tail += form.tail;
    }
    const StageForm& first = *stages[c].form;
    // The others wait for the first part of a backward that is taken in two.
    const double waited_for = split ? (first.forward.time + first.input.time) * micro_batches : own;
    least = std::max({least, own + tail, before + waited_for + after});
    before += first.forward.time + stages[c].send_forward;
    after += split ? first.input.time : first.backward[last].time;
  }
  constexpr double rounding = 1e-9;
  return least * (1 - not_walked - rounding);
}

// Whatever waits for a message or a pass that ends sooner ends sooner, too; gradients alone do not, which lose less to
// a message that comes later: so they have a wire to themselves in what a step takes at the least.
ScheduleForm::Ends ScheduleForm::ends(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages,
                                      const LastMessages& last, const std::function<bool(double)>& wanted) {
  prepare(shape, stages);
  if (crowded_) {
    crowded_ = false, apart_ = true, sharing_ = share();
    Ends least = steady(shape, stages, last, [](double) { return true; });
    crowded_ = sharing_ = true, apart_ = false;
    least.time *= 1 - 2 * not_walked;
    least.walked = false;
    if (!wanted(least.time)) return least;
  }
  return steady(shape, stages, last, wanted);
}

// So long as the coordinate before is not done with its first pass forward, nobody waits for one that has not begun.
bool ScheduleForm::unnoticed(const std::vector<double>& begins, const std::vector<double>& others) const {
  double done = stages_.front().form->forward.time;  // by the coordinate before, at the least
  for (std::size_t c = 1; c < coordinates_; ++c) {
    if (begins[c] != others[c] && std::max(begins[c], others[c]) > done) return false;
    done = std::max(done, begins[c]) + stages_[c - 1].send_forward + stages_[c].form->forward.time;
  }
  return true;
}

// Devices that begin later end no sooner, so that no step is shorter than the first device's share of the first one.
ScheduleForm::Ends ScheduleForm::steady(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages,
                                        const LastMessages& last, const std::function<bool(double)>& wanted) {
  SuccessiveSteps steps(coordinates_);
  while (true) {
    walk_enough(shape, stages, last, steps.begins());
    const auto slowest = static_cast<std::size_t>(std::ranges::max_element(ends_) - ends_.begin());
    const double time = ends_[slowest] - steps.begins()[slowest], least = ends_.front() * (1 - 2 * not_walked);
    begins_ = steps.begins();
    if (!steps.again(ends_)) return {time, slowest};
    if (unnoticed(begins_, steps.begins())) return {ends_[slowest] - steps.begins()[slowest], slowest};
    if (!crowded_ && !wanted(least)) return {least, slowest, false};
  }
}

void ScheduleForm::walk_enough(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages,
                               const LastMessages& last, const std::vector<double>& begins) {
  constexpr double agreement = 2 * not_walked;  // of the step
  const int round = shape.coordinates, rest = shape.micro_batches % round;
  // gpipe is never full of passes of both kinds, and a line of one coordinate is never apart from its ends.
  const bool even = shape.schedule != PipelineSchedule::gpipe && round > 1;
  // Which of crowded messages meet is no max-plus map, so the differences bound nothing: as many are walked as may be.
  int first = 3;
  if (crowded_)
    first = std::max(first, static_cast<int>(turns_followed / turns_of_a_round(stages.size(), coordinates_)));
  // A round fills the pipeline, one settles it (a chunk more of an interleaved one fills it half a round longer), and
  // those after it are compared.
  for (int rounds = first; even && (rounds + 1) * round + rest < shape.micro_batches; rounds *= 2) {
    // As many are left as lie between the two states, or a multiple: only those do the differences bound.
    const int spaced = rounds - 2, all = shape.micro_batches / round, left = (all - rounds) / spaced * spaced;
    if (left == 0) break;
    ScheduleShape shorter = shape;
    shorter.micro_batches = (all - left) * round + rest;
    walk(shorter, begins, spaced);
    finish(stages, last);
    const double time = std::ranges::max(ends_);
    if (!crowded_ && (most_ - least_) * left > agreement * (time + least_ * left)) continue;
    for (double& end : ends_) end += (least_ + most_) / 2 * left;
    return;
  }
  walk(shape, begins, 0);
  finish(stages, last);
}

}  // namespace sibyl::closed

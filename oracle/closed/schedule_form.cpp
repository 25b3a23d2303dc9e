#include "oracle/closed/schedule_form.h"

#include <algorithm>

namespace sibyl::closed {
namespace {

// Of x passes of a coordinate, taken round by round as interleaved() has them, those through one chunk: the `nth` in
// its round.
int through_chunk(const ScheduleShape& shape, int x, int nth) {
  const int round = shape.coordinates * shape.chunks;
  return x / round * shape.coordinates + std::clamp(x % round - nth * shape.coordinates, 0, shape.coordinates);
}

int interleaved_warm_up(const ScheduleShape& shape, int coordinate) {
  return (shape.coordinates - coordinate - 1) * 2 + (shape.chunks - 1) * shape.coordinates;
}

// After a round's last forward pass through the chunk there are as many as there will be in that round: before, each
// pass forward is followed by one backward at most.
int interleaved_in_flight(const ScheduleShape& shape, int coordinate, int chunk) {
  constexpr int rounds_until_full = 4;  // the first backward pass comes in the third at the latest
  const int round = shape.coordinates * shape.chunks, warm_up = interleaved_warm_up(shape, coordinate);
  int most = 0;
  for (int r = 0; r < std::min(shape.micro_batches / shape.coordinates, rounds_until_full); ++r) {
    const int forward = r * round + (chunk + 1) * shape.coordinates, backward = std::max(0, forward - 1 - warm_up);
    most =
        std::max(most, through_chunk(shape, forward, chunk) - through_chunk(shape, backward, shape.chunks - 1 - chunk));
  }
  return most;
}

}  // namespace

InFlight in_flight(const ScheduleShape& shape) {
  const int stages = shape.coordinates * shape.chunks;
  InFlight result{std::vector<int>(static_cast<std::size_t>(stages), shape.micro_batches),
                  std::vector<int>(static_cast<std::size_t>(stages), 0)};
  for (int s = 0; s < stages; ++s) {
    const int coordinate = s % shape.coordinates;
    int &all = result.all[static_cast<std::size_t>(s)], &later = result.later[static_cast<std::size_t>(s)];
    switch (shape.schedule) {
      case PipelineSchedule::gpipe: break;
      case PipelineSchedule::one_forward_one_backward: all = std::min(all, shape.coordinates - coordinate); break;
      case PipelineSchedule::interleaved: all = interleaved_in_flight(shape, coordinate, s / shape.coordinates); break;
      case PipelineSchedule::zero_bubble:
        later = std::min(all, coordinate + 1);
        all = std::min(all, shape.coordinates);
        break;
    }
  }
  return result;
}

void ScheduleForm::prepare(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages) {
  coordinates_ = static_cast<std::size_t>(shape.coordinates);
  interleaved_ = shape.schedule == PipelineSchedule::interleaved;
  split_ = shape.schedule == PipelineSchedule::zero_bubble;
  stages_.clear();
  for (const StageInPipeline& s : stages)
    stages_.push_back({s.form->forward.time, s.send_forward, s.send_backward, s.form->input.time, s.form->messages,
                       s.form->backward, s.forward_wire, s.backward_wire, s.form->wires_forward, s.form->wires_backward,
                       s.form->wires_messages});
  sends_.clear();
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageInPipeline& sends = stages[s];
    const double both = stages_[s].forward + stages_[s].backward[slot_of(false, false)].time;
    sends_.push_back({sent_by(sends.send_forward, sends.forward_wire, sends.forward_passage),
                      sent_by(sends.send_backward, sends.backward_wire, sends.backward_passage),
                      both + (split_ ? stages_[s].input : 0.0)});
  }
  arrived_.resize(coordinates_);
  crowded_ = crowded(sends_, coordinates_);
  sharing_ = crowded_ || share();
  for (auto* times : {&forward_times_, &backward_times_, &forward_sends_, &backward_sends_}) times->clear();
  for (const Stage& stage : stages_) {
    forward_times_.push_back(stage.forward);
    backward_times_.push_back(stage.backward[slot_of(false, false)].time);
    forward_sends_.push_back(stage.send_forward);
    backward_sends_.push_back(stage.send_backward);
  }
}

void ScheduleForm::number_passes(const ScheduleShape& shape) {
  const int chunks = shape.chunks, round = shape.coordinates * chunks, passes = shape.micro_batches * chunks;
  passes_.resize(static_cast<std::size_t>(passes));
  for (int n = 0; n < passes; ++n) {
    const int micro_batch = n / round * shape.coordinates + n % shape.coordinates, nth = n % round / shape.coordinates;
    passes_[static_cast<std::size_t>(n)] = {
        static_cast<std::uint32_t>(nth * shape.coordinates),
        static_cast<std::uint32_t>((chunks - 1 - nth) * shape.coordinates),
        static_cast<std::uint32_t>(slot_of(micro_batch == 0, micro_batch + 1 == shape.micro_batches))};
  }
  first_last_ = passes - round + shape.coordinates - 1;
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
  if (crowded_) lost_ = lost_between_nodes(shape);
  sent_.assign(coordinates_, {});
  const int rounds_apart = spaced * shape.coordinates * shape.chunks;
  if (sharing_ || interleaved_)
    walk_by_rounds(rounds_apart);
  else
    walk_by_ticks(shape.schedule == PipelineSchedule::gpipe, rounds_apart);
  if (spaced > 0) compare(spaced);
  for (std::size_t i = 0; split_ && i < coordinates_; ++i)
    for (std::size_t n = passes_.size() - std::min(i, passes_.size()); n < passes_.size(); ++n) weight_pass(i, n);
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

void ScheduleForm::walk_by_ticks(bool forward_first, int apart) {
  lock_step_.begin(coordinates_, {static_cast<int>(passes_.size()), forward_first, split_});
  for (std::size_t c = 0; c < coordinates_; ++c) {
    const Stage& stage = stages_[c];
    const double backward = stage.backward[slot_of(false, false)].time;
    lock_step_.set_times(
        c, {stage.forward, stage.send_forward, split_ ? stage.input : backward, stage.send_backward, backward});
    lock_step_.set_state(c, {free_[c], forwards_[c], backwards_[c]});
  }
  const auto take = [&](std::size_t c) {
    const LockStep::State state = lock_step_.state(c);
    free_[c] = state.ready, forwards_[c] = state.forward, backwards_[c] = state.backward;
  };
  const auto take_all = [&] {
    for (std::size_t c = 0; c < coordinates_; ++c) take(c);
  };
  for (int tick = 0; tick < lock_step_.ticks(); ++tick) {
    for (const LockStep::Single& single : lock_step_.go(tick)) {
      const std::size_t c = single.coordinate;
      take(c);
      backward_pass(c, single.micro_batch, single.arrived);
      lock_step_.set_state(c, {free_[c], forwards_[c], backwards_[c]});
    }
    if (apart == 0 || (tick != lock_step_.last_forward() - 2 * apart && tick != lock_step_.last_forward())) continue;
    take_all();
    (tick == lock_step_.last_forward() ? after_ : before_) = state();
  }
  take_all();
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
  for (std::size_t s = 0; s < stages_.size(); ++s)
    for (std::size_t t = s % coordinates_; t < stages_.size(); t += coordinates_)
      for (const auto& [send, wire] : {std::pair{stages_[t].send_forward, wire_of(stages_[t].forward_wire)},
                                       std::pair{stages_[t].send_backward, wire_of(stages_[t].backward_wire)}})
        if (send > 0 &&
            (stages_[s].wires_forward.busy.on[wire].seconds > 0 || stages_[s].wires_backward.busy.on[wire].seconds > 0))
          return true;
  return false;
}

LostToOthers ScheduleForm::lost_between_nodes(const ScheduleShape& shape) const {
  const Result<Turns> turns = make_schedule(shape.schedule, {shape.coordinates, shape.chunks, shape.micro_batches});
  return lost_to_others(*turns, sends_, shape.micro_batches, [&](const Turn& turn) {
    const Stage& stage = stages_[static_cast<std::size_t>(turn.stage)];
    if (turn.kind == Turn::Kind::forward) return stage.forward;
    if (turn.kind == Turn::Kind::backward_input) return stage.input;
    return stage.backward[slot_of(turn.micro_batch == 0, turn.micro_batch + 1 == shape.micro_batches)].time;
  });
}

void ScheduleForm::send(std::size_t coordinate, const Stage& stage, bool forward, const Beside& beside) {
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
void ScheduleForm::forward_passes_sharing(int round) {
  const double around = forwards_.back();
  for (std::size_t i = coordinates_; i-- > 0;) {
    const Stage* stage = forward_in(round, i);
    if (stage == nullptr) continue;
    const bool enters = stage == stages_.data();
    const double start = std::max(free_[i], i > 0 ? forwards_[i - 1] : enters ? 0.0 : around);
    free_[i] = start + stage->forward + turn_delay(start, wires_[i], stage->wires_forward, stage->forward);
    const Stage* next = forward_in(round + 1, i);
    std::optional<std::size_t> backward = backward_in(round, i);
    if (!backward && next == nullptr) backward = 0;
    Beside beside;
    if (backward) {
      next = &stages_[passes_[*backward].backward + i];
      beside = {&next->wires_backward, backward_time(*next, *backward)};
    } else {
      beside = {&next->wires_forward, next->forward};
    }
    send(i, *stage, true, beside);
  }
}

// Each finds what the one before it sent a round ago. Coordinates whose passes go through one chunk follow each other,
// and so do their stages.
void ScheduleForm::forward_passes(int round) {
  if (sharing_) return forward_passes_sharing(round);
  const int passes = static_cast<int>(passes_.size()), coordinates = static_cast<int>(coordinates_);
  const bool around = round < passes && passes_[static_cast<std::size_t>(round)].forward > 0;
  arrived_.front() = around ? forwards_.back() : 0.0;  // at the first coordinate's next chunk
  std::copy(forwards_.begin(), forwards_.end() - 1, arrived_.begin() + 1);
  const int first = std::max(0, round - passes + 1);
  for (int last = std::min(coordinates - 1, round); last >= first;) {
    const int pass = round - last, begin = std::max(first, last - (coordinates - 1 - pass % coordinates));
    const std::size_t chunk = passes_[static_cast<std::size_t>(pass)].forward;
    const double *times = &forward_times_[chunk], *sends = &forward_sends_[chunk];
    pass_all(static_cast<std::size_t>(last - begin + 1), &free_[static_cast<std::size_t>(begin)],
             &arrived_[static_cast<std::size_t>(begin)], &forwards_[static_cast<std::size_t>(begin)], times + begin,
             sends + begin);
    last = begin - 1;
  }
}

void ScheduleForm::backward_passes(int round) {
  const int passes = static_cast<int>(passes_.size()), first = round - lead_;  // the pass of the first coordinate
  if (interleaved_) return interleaved_backward_passes(first);
  if (first < 0 || first >= passes) return;
  for (std::size_t at = coordinates_; at-- > 0;)  // and in this one
    backward_pass(at, static_cast<std::size_t>(first), at + 1 < coordinates_ ? backwards_[at + 1] : 0.0);
}

// Each finds what the next coordinate sent a round ago. Neither the first micro-batch's passes nor the last one's, nor
// what comes around, nor any when gradients may be under way, are among those that are taken in a row.
void ScheduleForm::interleaved_backward_passes(int first) {
  const int passes = static_cast<int>(passes_.size()), coordinates = static_cast<int>(coordinates_);
  std::copy(backwards_.begin() + 1, backwards_.end(), arrived_.begin());
  arrived_.back() = backwards_.front();
  const int last = std::min(coordinates - 1, passes - 1 - first);
  const bool one_by_one = sharing_ || first + last > first_last_;
  for (int i = std::max(0, -first); i <= last; ++i) {
    const int pass = first + i, of_chunk = pass % coordinates;
    const std::size_t chunk = passes_[static_cast<std::size_t>(pass)].backward;
    const double *times = &backward_times_[chunk], *sends = &backward_sends_[chunk];
    const int end =
        of_chunk == 0 || one_by_one ? i : std::min({last + 1, coordinates - 1, i + coordinates - 1 - of_chunk});
    if (end > i) {
      const auto begin = static_cast<std::size_t>(i);
      pass_all(static_cast<std::size_t>(end - i), &free_[begin], &arrived_[begin], &backwards_[begin], times + i,
               sends + i);
      i = end;
    }
    if (i > last) return;
    const auto at = static_cast<std::size_t>(i), now = static_cast<std::size_t>(first + i);
    const bool ends = passes_[now].backward + at + 1 == stages_.size();
    if (ends) arrived_[at] = 0.0;
    if (is_undisturbed(at, now))
      pass_all(1, &free_[at], &arrived_[at], &backwards_[at], times + i, sends + i);
    else
      backward_pass(at, now, arrived_[at]);
  }
}

// Of neither the first micro-batch nor the last one, and with all of the wire.
bool ScheduleForm::is_undisturbed(std::size_t coordinate, std::size_t pass) const {
  return !sharing_ && passes_[pass].slot == slot_of(false, false) &&
         gradients_[coordinate].end() <= std::max(free_[coordinate], arrived_[coordinate]);
}

void ScheduleForm::backward_pass(std::size_t coordinate, std::size_t pass, double arrival) {
  const PassOf& of = passes_[pass];
  const Stage& stage = stages_[of.backward + coordinate];
  const StageForm::Turns& turns = stage.backward[of.slot];
  const double time = backward_time(stage, pass), start = std::max(free_[coordinate], arrival);
  const double delay = (sharing_ ? turn_delay(start, wires_[coordinate], stage.wires_backward, time) : 0.0) +
                       (apart_ ? 0.0 : gradients_[coordinate].delay_turn(start, stage.wires_backward, time));
  free_[coordinate] = start + time + delay;
  if (!split_ && is_last(of.slot)) exchange(coordinate, stage, start + delay + turns.messages);
  Beside beside;  // behind backward passes alone each mostly waits for its neighbour first
  if (sharing_ && !(split_ && pass >= coordinate)) {
    const int round = static_cast<int>(pass) + lead_ - (interleaved_ ? static_cast<int>(coordinate) : 0);
    if (const Stage* next = forward_in(round + 1, coordinate)) beside = {&next->wires_forward, next->forward};
  }
  send(coordinate, stage, false, beside);
  if (split_ && pass >= coordinate) weight_pass(coordinate, pass - coordinate);
}

// As the walk has it: the wire is the coordinate's.
void ScheduleForm::exchange(std::size_t coordinate, const Stage& stage, double alone) {
  GradientsUnderWay& others = gradients_[coordinate];
  const double behind = stage.messages > 0 ? others.end() + stage.messages : 0.0;
  others.add(std::max(behind, alone), stage.messages, stage.wires_messages);
}

void ScheduleForm::weight_pass(std::size_t coordinate, std::size_t pass) {
  const Stage& stage = stages_[coordinate];
  const StageForm::Turns& turns = stage.backward[passes_[pass].slot];
  if (is_last(passes_[pass].slot)) exchange(coordinate, stage, free_[coordinate] + turns.messages);
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
    for (std::size_t s = 0; s < stages.size(); ++s) ends_[s % coordinates_] += sign * stages[s].form->*part;
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

// Devices that begin later end no sooner, so that no step is shorter than the first device's share of the first one.
ScheduleForm::Ends ScheduleForm::steady(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages,
                                        const LastMessages& last, const std::function<bool(double)>& wanted) {
  SuccessiveSteps steps(coordinates_);
  while (true) {
    walk_enough(shape, stages, last, steps.begins());
    const auto slowest = static_cast<std::size_t>(std::ranges::max_element(ends_) - ends_.begin());
    const double time = ends_[slowest] - steps.begins()[slowest], least = ends_.front() * (1 - 2 * not_walked);
    if (!steps.again(ends_)) return {time, slowest};
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

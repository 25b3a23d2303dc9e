// Schedules whose messages may meet on wires between nodes.
#include <algorithm>

#include "oracle/closed/schedule_form.h"

namespace sibyl::closed {
namespace {

bool may_meet(const std::vector<StageInPipeline>& stages) {
  return std::ranges::any_of(stages, [](const StageInPipeline& stage) {
    return (stage.send_forward > 0 && !stage.forward_shared.empty()) ||
           (stage.send_backward > 0 && !stage.backward_shared.empty());
  });
}

// A message all of whose wires are as full as they can be, all the time.
void slow_down(double& send, WireUse& wire, std::span<const SharedWire> shared) {
  double most = 1;
  for (const SharedWire& one : shared) most = std::max(most, one.slowed.back());
  const double latency = send * (1 - wire.busy), slowed = send * wire.busy * most;
  send = latency + slowed;
  if (send > 0) wire.busy = slowed / send;
}

std::vector<StageInPipeline> slowest(std::vector<StageInPipeline> stages) {
  for (StageInPipeline& stage : stages) {
    slow_down(stage.send_forward, stage.forward_wire, stage.forward_shared);
    slow_down(stage.send_backward, stage.backward_wire, stage.backward_shared);
  }
  return stages;
}

}  // namespace

// No message takes less than alone, nor more than beside all others: where that makes no difference, it need not be
// known which of them meet.
ScheduleForm::Ends ScheduleForm::ends(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages,
                                      const std::vector<TiedMessage>& tied) {
  meeting_.clear();
  const Ends alone = settled(shape, stages, tied);
  if (!may_meet(stages)) return alone;
  const Ends most = settled(shape, slowest(stages), tied);
  if (most.time - alone.time <= not_walked * alone.time) return alone;
  prepare_meeting(stages);
  Ends met = settled(shape, stages, tied);
  met.time = std::clamp(met.time, alone.time, most.time);
  return met;
}

void ScheduleForm::prepare_meeting(const std::vector<StageInPipeline>& stages) {
  using Kind = Turn::Kind;
  for (const StageInPipeline& stage : stages) {
    const StageForm& form = *stage.form;
    StageTimes& times = meeting_.emplace_back();
    const auto set = [&times](Kind kind, Place place, double seconds, const WireTime& wires) {
      TurnTimes& turn = times.turns[StageTimes::slot(kind, place)];
      turn.total = Seconds{seconds};
      turn.wires = wires;
    };
    set(Kind::forward, {}, form.forward.time, form.wires_forward);
    set(Kind::backward_input, {}, form.input.time, form.wires_backward);
    for (const bool first : {true, false})
      for (const bool last : {true, false}) {
        const double backward = form.backward[slot_of(first, last)].time;
        set(Kind::backward, {first, last}, backward, form.wires_backward);
        set(Kind::backward_weight, {first, last}, backward, {});
      }
    times.send_forward = Seconds{stage.send_forward};
    times.send_backward = Seconds{stage.send_backward};
    times.forward_wire = stage.forward_wire;
    times.backward_wire = stage.backward_wire;
    times.forward_shared = stage.forward_shared;
    times.backward_shared = stage.backward_shared;
  }
}

void ScheduleForm::walk_meeting(const ScheduleShape& shape, int spaced) {
  const Turns turns = make_schedule(shape.schedule, {shape.coordinates, shape.chunks, shape.micro_batches}).value();
  const Timetable table = timetable(turns, meeting_, shape.micro_batches);
  for (std::size_t c = 0; c < coordinates_; ++c) {
    free_[c] = table[c].back().span.end.value();
    for (std::size_t i = 0; i < turns[c].size(); ++i) {
      const TurnInTime& turn = table[c][i];
      if (!closes(turns[c][i]) || !turn.place.last) continue;
      const Stage& stage = stages_[static_cast<std::size_t>(turns[c][i].stage)];
      const double messages = stage.backward[slot_of(turn.place.first, turn.place.last)].messages;
      exchange(c, stage, (turn.span.start + turn.delay).value() + messages);
    }
  }
  if (spaced == 0) return;
  const int last = static_cast<int>(passes_.size()) - 1, round = shape.coordinates * shape.chunks;
  before_ = state_after(last - spaced * round, turns, table);
  compare(state_after(last, turns, table), spaced);
}

// What state() is after as many rounds of coordinates in step: since then each is free, and has sent its last message
// each way.
std::vector<std::vector<double>> ScheduleForm::state_after(int round, const Turns& turns, const Timetable& table) const {
  const int passes = static_cast<int>(passes_.size());
  std::vector<std::vector<double>> all(3, std::vector<double>(coordinates_, 0.0));
  for (std::size_t c = 0; c < coordinates_; ++c) {
    const int own = static_cast<int>(c);
    const int forward = std::clamp(round - own + 1, 0, passes);
    const int backward = std::clamp(round - lead_ + (interleaved_ ? own : 0) + 1, 0, passes);
    const int weights = split_ ? std::max(0, backward - own) : 0;
    const auto taken = static_cast<std::size_t>(forward + backward + weights);
    if (taken == 0) continue;
    all[0][c] = table[c][taken - 1].span.end.value();
    for (std::size_t i = 0; i < taken; ++i) {
      if (turns[c][i].kind == Turn::Kind::backward_weight) continue;
      const bool forwards = turns[c][i].kind == Turn::Kind::forward;
      all[forwards ? 1 : 2][c] = std::max(table[c][i].span.end, table[c][i].sent.end).value();
    }
  }
  return all;
}

}  // namespace sibyl::closed

#include "oracle/closed/schedule_form.h"

#include <algorithm>

#include "oracle/plan/pipeline/balance.h"

namespace sibyl::closed {

using Kind = sibyl::Turn::Kind;

const ScheduleForms::Known& ScheduleForms::known(const ScheduleShape& shape) {
  const auto [entry, added] = known_.try_emplace(shape);
  Known& known = entry->second;
  if (!added) return known;
  const int stages = shape.coordinates * shape.chunks;
  const Turns turns = make_schedule(shape.schedule, {shape.coordinates, shape.chunks, shape.micro_batches}).value();
  const auto closes = [](const sibyl::Turn& turn) {
    return turn.kind == Kind::backward || turn.kind == Kind::backward_weight;
  };
  std::vector<int> begun(static_cast<std::size_t>(stages), 0);
  in_order(turns, stages, [&](const sibyl::Turn& turn) {
    const auto stage = static_cast<std::size_t>(turn.stage);
    Turn own{static_cast<std::uint32_t>(turn.micro_batch),
             static_cast<std::uint16_t>(stage),
             static_cast<std::uint16_t>(turn.stage % shape.coordinates),
             turn.kind,
             0,
             false};
    if (closes(turn)) {
      own.last = begun[stage] + 1 == shape.micro_batches;
      own.slot = static_cast<std::uint8_t>(StageForm::slot(begun[stage]++ == 0, own.last));
    }
    known.turns.push_back(own);
  });
  known.in_flight.all = sibyl::in_flight(turns, stages);
  known.in_flight.later.assign(static_cast<std::size_t>(stages), 0);
  std::vector<int> now = known.in_flight.later;
  for (const std::vector<sibyl::Turn>& own : turns)
    for (const sibyl::Turn& turn : own) {
      const auto stage = static_cast<std::size_t>(turn.stage);
      if (turn.kind == Kind::backward_input)
        known.in_flight.later[stage] = std::max(known.in_flight.later[stage], ++now[stage]);
      if (turn.kind == Kind::backward_weight) --now[stage];
    }
  return known;
}

const ScheduleForms::InFlight& ScheduleForms::in_flight(const ScheduleShape& shape) {
  ScheduleShape enough = shape;  // more show nothing new
  if (shape.schedule != PipelineSchedule::gpipe)
    enough.micro_batches = std::min(shape.micro_batches, 4 * shape.coordinates);
  return known(enough).in_flight;
}

ScheduleForms::Ends ScheduleForms::walk(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages,
                                        const std::vector<TiedMessage>& tied) {
  const std::vector<Turn>& turns = known(shape).turns;
  const std::size_t count = stages.size(), coordinates = static_cast<std::size_t>(shape.coordinates);
  forward_.assign(count * static_cast<std::size_t>(shape.micro_batches), 0.0);
  backward_.assign(forward_.size(), 0.0);
  for (auto* times : {&free_, &channel_forward_, &channel_backward_, &messages_}) times->assign(coordinates, 0.0);
  for (const Turn& turn : turns) {
    const StageInPipeline& stage = stages[turn.stage];
    const std::size_t at = turn.micro_batch * count + turn.stage;
    double start = free_[turn.coordinate];
    if (turn.kind == Kind::forward) {
      if (turn.stage > 0) start = std::max(start, forward_[at - 1]);
      const double end = start + stage.form->forward.time;
      free_[turn.coordinate] = end;
      double& channel = channel_forward_[turn.coordinate];
      forward_[at] = channel = std::max(channel, end) + stage.send_forward;
      continue;
    }
    const bool hands_on = turn.kind != Kind::backward_weight;
    if (hands_on && turn.stage + 1U < count) start = std::max(start, backward_[at + 1]);
    const StageForm::Turns& times =
        turn.kind == Kind::backward_input ? stage.form->input : stage.form->backward[turn.slot];
    const double end = start + times.time;
    free_[turn.coordinate] = end;
    if (turn.last) messages_[turn.coordinate] = std::max(messages_[turn.coordinate], start + times.messages);
    if (!hands_on) continue;
    double& channel = channel_backward_[turn.coordinate];
    backward_[at] = channel = std::max(channel, end) + stage.send_backward;
  }
  for (std::size_t c = 0; c < coordinates; ++c) free_[c] = std::max(free_[c], messages_[c]);
  messages_ = free_;
  for (const TiedMessage& message : tied) {
    double ready = 0;
    for (const int s : message.stages) ready = std::max(ready, free_[static_cast<std::size_t>(s) % coordinates]);
    for (const int s : message.stages) {
      double& own = messages_[static_cast<std::size_t>(s) % coordinates];
      own = std::max(own, ready) + message.seconds;
    }
  }
  for (std::size_t s = 0; s < count; ++s) messages_[s % coordinates] += stages[s].form->tail;
  const auto slowest = std::max_element(messages_.begin(), messages_.end());
  return {*slowest, static_cast<std::size_t>(slowest - messages_.begin())};
}

ScheduleForms::Ends ScheduleForms::ends(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages,
                                        const std::vector<TiedMessage>& tied) {
  const int round = shape.coordinates, walked = 4 * round + shape.micro_batches % round;
  if (shape.schedule == PipelineSchedule::gpipe || shape.micro_batches <= walked + round)
    return walk(shape, stages, tied);
  ScheduleShape shorter = shape, longer = shape;
  shorter.micro_batches = walked;
  longer.micro_batches = walked + round;
  const Ends less = walk(shorter, stages, tied);
  Ends more = walk(longer, stages, tied);
  more.time += (more.time - less.time) * static_cast<double>((shape.micro_batches - walked - round) / round);
  return more;
}

}  // namespace sibyl::closed

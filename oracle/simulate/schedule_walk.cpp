#include "oracle/simulate/schedule_walk.h"

#include <algorithm>

#include "oracle/simulate/node_wires.h"
#include "oracle/simulate/successive_steps.h"

namespace sibyl {

using Kind = Turn::Kind;

std::size_t StageTimes::slot(Kind kind, Place place) {
  const std::size_t at = (place.first ? 0U : 1U) + (place.last ? 0U : 2U);
  switch (kind) {
    case Kind::forward: return 0;
    case Kind::backward_input: return 1;
    case Kind::backward: return 2 + at;
    case Kind::backward_weight: return 6 + at;
  }
  return 0;
}

StageTimes stage_times(const Stage& stage, const PricedStage& priced, const Relief& relief,
                       const std::function<TurnTimes(Turn, Place)>& time) {
  StageTimes times;
  const auto price = [&](Kind kind, Place place) {
    times.turns[StageTimes::slot(kind, place)] = time(Turn{kind, 0, 0}, place);
  };
  price(Kind::forward, {});
  for (const bool first : {true, false})
    for (const bool last : {true, false}) {
      if (!splits_backward(stage)) price(Kind::backward, {first, last});
      if (splits_backward(stage)) price(Kind::backward_weight, {first, last});
    }
  if (splits_backward(stage)) price(Kind::backward_input, {});
  if (priced.send_forward) times.send_forward = priced.send_forward->time * relief.network;
  if (priced.send_backward) times.send_backward = priced.send_backward->time * relief.network;
  times.forward_wire = priced.forward_wire;
  times.backward_wire = priced.backward_wire;
  times.forward_passage = priced.forward_passage;
  times.backward_passage = priced.backward_passage;
  times.tail = tail_times(stage, priced, relief);
  for (const PricedMessage& gather : priced.unit_gathers) times.gathers += gather.estimate.time.time * relief.network;
  for (const PricedMessage& message : priced.messages) {
    const Seconds duration = message.estimate.time.time * relief.network;
    times.messages += duration;
    if (message.stages.empty()) {
      times.own_messages += duration;
      times.own_wires.add(duration.value(), message.wire);
    } else {
      times.tied.push_back({message.stages, duration});
    }
  }
  return times;
}

namespace {

// When each coordinate's last message is there, if its turns and its own messages end so: parameters that several
// stages hold are exchanged when all of these have ended. Each of those who hold the parameter lists the exchange.
std::vector<Seconds> after_ties(const std::vector<StageTimes>& stages, const std::vector<Seconds>& ends) {
  std::vector<Seconds> after = ends;
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (const StageTimes::Tied& tie : stages[s].tied) {
      Seconds ready;
      for (const int other : tie.stages) ready = std::max(ready, ends[static_cast<std::size_t>(other) % ends.size()]);
      Seconds& own = after[s % ends.size()];
      own = std::max(own, ready) + tie.time;
    }
  return after;
}

std::vector<CoordinateTail> tails(const std::vector<StageTimes>& stages, const std::vector<Seconds>& ends) {
  std::vector<CoordinateTail> result(ends.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const TailTimes& tail = stages[s].tail;
    CoordinateTail& own = result[s % ends.size()];
    own.before += tail.norm.value_or(Seconds{});
    own.after += tail.total - tail.norm.value_or(Seconds{});
  }
  if (!stages.front().tail.norm) return result;
  Seconds all;
  for (std::size_t c = 0; c < ends.size(); ++c) all = std::max(all, ends[c] + result[c].before);
  for (std::size_t c = 0; c < ends.size(); ++c) result[c].wait = all - ends[c] - result[c].before;
  return result;
}

// Nothing where messages between nodes are few or short.
std::optional<LostToOthers> lost_between_nodes(const Turns& turns, const std::vector<StageTimes>& stages,
                                               int micro_batches) {
  constexpr Place inner{false, false};
  const bool split =
      std::ranges::any_of(turns.front(), [](const Turn& turn) { return turn.kind == Kind::backward_input; });
  std::vector<StageSends> sends;
  for (const StageTimes& stage : stages) {
    Seconds both =
        stage.turn(Kind::forward).total + stage.turn(split ? Kind::backward_weight : Kind::backward, inner).total;
    if (split) both += stage.turn(Kind::backward_input).total;
    sends.push_back({sent_by(stage.send_forward.value(), stage.forward_wire, stage.forward_passage),
                     sent_by(stage.send_backward.value(), stage.backward_wire, stage.backward_passage), both.value()});
  }
  if (!crowded(sends, turns.size())) return std::nullopt;
  return lost_to_others(turns, sends, micro_batches, [&](const Turn& turn) {
    const Place place{turn.micro_batch == 0, turn.micro_batch + 1 == micro_batches};
    return stages[static_cast<std::size_t>(turn.stage)].turn(turn.kind, place).total.value();
  });
}

class ScheduleWalk {
 public:
  // `begins`: by coordinate, when it is free for the step.
  ScheduleWalk(const Turns& turns, const std::vector<StageTimes>& stages, int micro_batches,
               const std::optional<LostToOthers>& lost, const std::vector<double>& begins)
      : turns_(turns),
        stages_(stages),
        lost_(lost),
        coordinates_(turns.size()),
        free_(turns.size()),
        forward_(stages.size() * static_cast<std::size_t>(micro_batches)),
        backward_(forward_.size()),
        channel_forward_(turns.size()),
        channel_backward_(turns.size()),
        taken_(turns.size(), 0),
        sent_(turns.size()),
        wires_(turns.size()),
        gradients_(turns.size()),
        under_way_(turns.size()),
        left_(stages.size()),
        begun_(stages.size(), false) {
    result_.coordinates.resize(turns.size());
    for (std::size_t c = 0; c < coordinates_; ++c) {
      result_.coordinates[c].begin = free_[c] = Seconds{begins[c]};
      channel_forward_[c] = Seconds{begins[(c + 1) % coordinates_]};
    }
    for (const std::vector<Turn>& own : turns)
      for (const Turn& turn : own)
        if (closes(turn)) ++left_[static_cast<std::size_t>(turn.stage)];
  }

  SimulatedPipeline run(const Cancelled& cancelled) {
    bool stopped = false;
    in_order(turns_, static_cast<int>(stages_.size()), [&](const Turn& turn) {
      stopped = stopped || is_true(cancelled);
      if (!stopped) take(turn);
    });
    finish();
    for (std::size_t c = 1; c < coordinates_; ++c)
      if (result_.coordinates[c].end() > result_.coordinates[result_.slowest].end()) result_.slowest = c;
    result_.step = result_.coordinates[result_.slowest].step;
    return std::move(result_);
  }

 private:
  // A turn of those that are timed, and when its last message is there if nothing holds it up.
  struct UnderWay {
    std::size_t turn = 0;
    Seconds end;
  };
  // A transfer: when its sender had it ready, and when it is there.
  struct Arrival {
    Seconds ready, there;
  };

  // Turns after which parameters' gradients are those of one more micro-batch.
  static bool closes(const Turn& turn) { return turn.kind == Kind::backward || turn.kind == Kind::backward_weight; }

  [[nodiscard]] std::size_t index(int stage, int micro_batch) const {
    return static_cast<std::size_t>(micro_batch) * stages_.size() + static_cast<std::size_t>(stage);
  }

  void take(const Turn& turn) {
    const auto stage = static_cast<std::size_t>(turn.stage);
    const std::size_t c = stage % coordinates_;
    CoordinateTimes& own = result_.coordinates[c];
    TimeBreakdown& parts = own.step.breakdown;
    const Place place = place_of(turn);
    if (closes(turn)) --left_[stage], begun_[stage] = true;
    const TurnTimes& times = stages_[stage].turn(turn.kind, place);
    ++taken_[c];
    const Seconds start = wait(turn, c);
    const Seconds delay{turn_delay(start.value(), wires_[c], times.wires, times.total.value()) +
                        gradients_[c].delay_turn(start.value(), times.wires, times.total.value())};
    const Seconds end = start + times.total + delay;
    (turn.kind == Kind::forward ? parts.forward : parts.backward) +=
        times.total - times.exchanged - times.host - times.copied;
    parts.host += times.host;
    parts.offload_exposed += times.copied;
    parts.offload_total += times.copies;
    parts.communication_exposed += times.exchanged + delay;
    parts.communication_total += times.exchanges;
    if (turn.kind != Kind::backward_weight) parts.communication_total += stages_[stage].gathers;
    Seconds behind;
    if (closes(turn) && place.last && times.messages.value() > 0) {
      // The wire is the coordinate's: what another of its stages still exchanges takes its share of it.
      const StageTimes& of = stages_[stage];
      const Seconds alone = start + times.messages + delay, others{gradients_[c].end()};
      behind = std::max(Seconds{}, others + of.own_messages - alone);
      if (alone + behind > others) {
        stretch(c);
        under_way_[c] = {own.turns.size(), alone + behind};
      }
      gradients_[c].add((alone + behind).value(), of.own_messages.value(), of.own_wires);
    }
    free_[c] = end;
    own.turns.push_back({turn, place, {start, end}, delay, send(turn, end, parts), behind});
  }

  // By what has held up the last turn's messages until now.
  void stretch(std::size_t c) {
    const UnderWay& last = under_way_[c];
    if (last.end <= Seconds{}) return;
    TimedTurn& turn = result_.coordinates[c].turns[last.turn];
    const Seconds left = last.end - turn.span.end, now = Seconds{gradients_[c].end()} - turn.span.end;
    if (left > Seconds{}) turn.stretch = now / left;
  }

  [[nodiscard]] Place place_of(const Turn& turn) const {
    if (!closes(turn)) return {};
    const auto stage = static_cast<std::size_t>(turn.stage);
    return {!begun_[stage], left_[stage] == 1};
  }

  // What a message loses to the coordinate's next turn. Behind backward passes alone each mostly waits for its
  // neighbour first.
  [[nodiscard]] double lost(const Turn& turn, std::size_t c, Seconds time, const WireUse& wire) const {
    if (taken_[c] == turns_[c].size()) return 0.0;
    const Turn& next = turns_[c][taken_[c]];
    if (turn.kind != Kind::forward && next.kind != Kind::forward) return 0.0;
    const TurnTimes& beside = stages_[static_cast<std::size_t>(next.stage)].turn(next.kind, place_of(next));
    return send_delay(time.value() * wire.busy, wire.flows, beside.wires.busy.on[wire_of(wire)], beside.total.value());
  }

  // When the turn starts. Of the time until then the links take at most as long as the transfer did.
  Seconds wait(const Turn& turn, std::size_t c) {
    Arrival arrival;
    if (turn.kind == Kind::forward && turn.stage > 0) arrival = forward_[index(turn.stage - 1, turn.micro_batch)];
    const bool backward = turn.kind == Kind::backward || turn.kind == Kind::backward_input;
    if (backward && turn.stage + 1 < static_cast<int>(stages_.size()))
      arrival = backward_[index(turn.stage + 1, turn.micro_batch)];
    const Seconds start = std::max(free_[c], arrival.there), gap = start - free_[c];
    const Seconds link = std::min(gap, arrival.there - arrival.ready);
    CoordinateTimes& own = result_.coordinates[c];
    own.links += link;
    own.step.breakdown.communication_exposed += link;
    own.step.breakdown.bubble += gap - link;
    return start;
  }

  Span send(const Turn& turn, Seconds ready, TimeBreakdown& parts) {
    const auto stage = static_cast<std::size_t>(turn.stage);
    if (turn.kind == Kind::backward_weight) return {};
    const bool forward = turn.kind == Kind::forward;
    const std::size_t c = stage % coordinates_;
    const Seconds alone = forward ? stages_[stage].send_forward : stages_[stage].send_backward;
    const WireUse& wire = forward ? stages_[stage].forward_wire : stages_[stage].backward_wire;
    Seconds& channel = (forward ? channel_forward_ : channel_backward_)[c];
    const Seconds start = std::max(ready, channel);
    const double to_others = lost_ && alone.value() > 0 ? lost_->at(c, forward, sent_[c][forward ? 0 : 1]++) : 0.0;
    const Seconds time = alone + Seconds{to_others + lost(turn, c, alone, wire) +
                                         gradients_[c].delay_send(start.value(), alone.value() * wire.busy, wire)};
    channel = start + time;
    if (alone.value() > 0) {  // its latency takes no wire
      OnWire& on = wires_[c][wire_of(wire)];
      on = {std::max(on.until, (channel - alone * (1 - wire.busy)).value()), wire.flows};
    }
    (forward ? forward_ : backward_)[index(turn.stage, turn.micro_batch)] = {ready, channel};
    parts.communication_total += time;
    return time.value() > 0 ? Span{start, channel} : Span{};
  }

  void finish() {
    std::vector<Seconds> ends(coordinates_);
    for (std::size_t c = 0; c < coordinates_; ++c) {
      stretch(c);
      result_.coordinates[c].messages_end = Seconds{gradients_[c].end()};
      ends[c] = std::max(free_[c], result_.coordinates[c].messages_end);
    }
    const std::vector<Seconds> after = after_ties(stages_, ends);
    const std::vector<CoordinateTail> then = tails(stages_, after);
    for (std::size_t c = 0; c < coordinates_; ++c) {
      if (after[c] > ends[c]) result_.coordinates[c].messages_end = after[c];
      finish(c, then[c]);
    }
  }

  void finish(std::size_t c, const CoordinateTail& then) {
    CoordinateTimes& own = result_.coordinates[c];
    TimeBreakdown& parts = own.step.breakdown;
    const Seconds end = std::max(free_[c], own.messages_end);
    parts.communication_exposed += end - free_[c];
    parts.bubble += then.wait;
    own.tail = then;
    own.step.total = end + then.total() - own.begin;
    for (std::size_t s = c; s < stages_.size(); s += coordinates_) {
      const TailTimes& tail = stages_[s].tail;
      parts.optimizer += tail.total - tail.host - tail.messages - tail.copies;
      parts.offload_exposed += tail.copies;
      parts.offload_total += tail.copies_all;
      parts.host += tail.host;
      parts.communication_exposed += tail.messages;
      parts.communication_total += tail.messages + stages_[s].messages;
    }
  }

  const Turns& turns_;
  const std::vector<StageTimes>& stages_;
  const std::optional<LostToOthers>& lost_;
  std::size_t coordinates_;
  std::vector<Seconds> free_;                                // by coordinate
  std::vector<Arrival> forward_, backward_;                  // by micro-batch and stage that sends
  std::vector<Seconds> channel_forward_, channel_backward_;  // by coordinate that sends: free from here on
  std::vector<std::size_t> taken_;                           // turns, by coordinate
  std::vector<std::array<std::size_t, 2>> sent_;             // messages, by coordinate and way
  std::vector<OnWires> wires_;                               // by coordinate: what it sends
  std::vector<GradientsUnderWay> gradients_;                 // by coordinate
  std::vector<UnderWay> under_way_;                          // of these, the last turn's
  std::vector<int> left_;                                    // by stage: backward turns to come
  std::vector<bool> begun_;
  SimulatedPipeline result_;
};

}  // namespace

SimulatedPipeline walk_schedule(const Turns& turns, const std::vector<StageTimes>& stages, int micro_batches,
                                const Cancelled& cancelled) {
  const std::optional<LostToOthers> lost = lost_between_nodes(turns, stages, micro_batches);
  SuccessiveSteps steps(turns.size());
  SimulatedPipeline step;
  std::vector<double> ends(turns.size());
  do {
    step = ScheduleWalk(turns, stages, micro_batches, lost, steps.begins()).run(cancelled);
    for (std::size_t c = 0; c < ends.size(); ++c) ends[c] = step.coordinates[c].end().value();
  } while (!is_true(cancelled) && steps.again(ends));
  return step;
}

}  // namespace sibyl

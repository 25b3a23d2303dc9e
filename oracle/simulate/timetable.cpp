#include "oracle/simulate/timetable.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "oracle/simulate/earliest.h"
#include "oracle/simulate/meeting_messages.h"

namespace sibyl {

using Kind = Turn::Kind;

namespace {

// What a coordinate sends in one direction.
std::size_t lane_of(std::size_t coordinate, bool forward) { return 2 * coordinate + (forward ? 0 : 1); }

// The wires that lanes share; nothing where none does.
std::vector<std::span<const SharedWire>> shared_lanes(const std::vector<StageTimes>& stages, std::size_t coordinates) {
  std::vector<std::span<const SharedWire>> lanes(2 * coordinates);
  bool any = false;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageTimes& stage = stages[s];
    if (stage.send_forward.value() > 0) lanes[lane_of(s % coordinates, true)] = stage.forward_shared;
    if (stage.send_backward.value() > 0) lanes[lane_of(s % coordinates, false)] = stage.backward_shared;
    any = any || (stage.send_forward.value() > 0 && !stage.forward_shared.empty()) ||
          (stage.send_backward.value() > 0 && !stage.backward_shared.empty());
  }
  if (!any) lanes.clear();
  return lanes;
}

class TimetableMaker {
 public:
  TimetableMaker(const Turns& turns, const std::vector<StageTimes>& stages, int micro_batches)
      : turns_(turns),
        stages_(stages),
        coordinates_(turns.size()),
        free_(turns.size()),
        forward_(stages.size() * static_cast<std::size_t>(micro_batches)),
        backward_(forward_.size()),
        channels_(2 * turns.size()),
        taken_(turns.size(), 0),
        wires_(turns.size()),
        left_(stages.size()),
        begun_(stages.size(), false),
        shared_(shared_lanes(stages, turns.size())),
        messages_(shared_),
        ends_(turns.size()) {
    table_.resize(turns.size());
    for (std::size_t c = 0; c < coordinates_; ++c) {
      table_[c].reserve(turns[c].size());
      for (const Turn& turn : turns[c])
        if (closes(turn)) ++left_[static_cast<std::size_t>(turn.stage)];
    }
  }

  Timetable make(const Cancelled& cancelled) {
    if (shared_.empty())
      in_order(cancelled);
    else
      in_time(cancelled);
    return std::move(table_);
  }

 private:
  // A transfer: when its sender had it ready, and when it is there.
  struct Arrival {
    Seconds ready, there;
    bool known = false;
  };

  void in_order(const Cancelled& cancelled) {
    bool stopped = false;
    sibyl::in_order(turns_, static_cast<int>(stages_.size()), [&](const Turn& turn) {
      stopped = stopped || is_true(cancelled);
      if (stopped) return;
      const std::size_t c = static_cast<std::size_t>(turn.stage) % coordinates_;
      begin(c);
      end(c);
    });
  }

  void in_time(const Cancelled& cancelled) {
    for (std::size_t c = 0; c < coordinates_; ++c) begin_if_ready(c);
    while (std::min(ends_.time(), messages_.time()) < Earliest::never && !is_true(cancelled)) {
      if (messages_.time() <= ends_.time()) {
        if (const auto arrived = messages_.go_on()) note(*arrived);
        continue;
      }
      const std::size_t c = ends_.which();
      ends_.set(c, Earliest::never);
      end(c);
      begin_if_ready(c);
    }
  }

  [[nodiscard]] std::size_t index(int stage, int micro_batch) const {
    return static_cast<std::size_t>(micro_batch) * stages_.size() + static_cast<std::size_t>(stage);
  }

  // What the turn waits for; null: nothing.
  [[nodiscard]] const Arrival* waits_for(const Turn& turn) const {
    if (turn.kind == Kind::forward && turn.stage > 0) return &forward_[index(turn.stage - 1, turn.micro_batch)];
    const bool backward = turn.kind == Kind::backward || turn.kind == Kind::backward_input;
    if (backward && turn.stage + 1 < static_cast<int>(stages_.size()))
      return &backward_[index(turn.stage + 1, turn.micro_batch)];
    return nullptr;
  }

  // In the order of time: the coordinate's next turn, once it is free and what that waits for is on its last way.
  void begin_if_ready(std::size_t c) {
    if (taken_[c] == turns_[c].size() || table_[c].size() > taken_[c]) return;
    const Arrival* arrival = waits_for(turns_[c][taken_[c]]);
    if (arrival != nullptr && !arrival->known) return;
    begin(c);
    ends_.set(c, table_[c].back().span.end.value());
  }

  void begin(std::size_t c) {
    const Turn& turn = turns_[c][taken_[c]];
    const auto stage = static_cast<std::size_t>(turn.stage);
    const Place place = place_of(turn);
    if (closes(turn)) --left_[stage], begun_[stage] = true;
    const TurnTimes& times = stages_[stage].turn(turn.kind, place);
    const Arrival* waited = waits_for(turn);
    const Arrival arrival = waited == nullptr ? Arrival{} : *waited;
    const Seconds start = std::max(free_[c], arrival.there), gap = start - free_[c];
    // Of the time until then the links take at most as long as the transfer did.
    const Seconds link = std::min(gap, arrival.there - arrival.ready);
    const Seconds delay{turn_delay(start.value(), sending_until(c), times.wires, times.total.value())};
    table_[c].push_back({place, {start, start + times.total + delay}, delay, link, {}, {}});
  }

  void end(std::size_t c) {
    free_[c] = table_[c].back().span.end;
    const Turn& turn = turns_[c][taken_[c]++];
    if (turn.kind != Kind::backward_weight) send(turn, c);
  }

  [[nodiscard]] Place place_of(const Turn& turn) const {
    if (!closes(turn)) return {};
    const auto stage = static_cast<std::size_t>(turn.stage);
    return {!begun_[stage], left_[stage] == 1};
  }

  // Until when the coordinate's wires are busy with what it sends; of messages that may yet be met as it looks now.
  [[nodiscard]] std::array<double, 2> sending_until(std::size_t c) const {
    std::array<double, 2> until = wires_[c];
    for (const bool forward : {true, false})
      if (const std::size_t lane = lane_of(c, forward); shares(lane))
        until[between_nodes] = std::max(until[between_nodes], messages_.until(lane));
    return until;
  }

  // What a message loses to the coordinate's next turn. Behind backward passes alone each mostly waits for its
  // neighbour first.
  [[nodiscard]] double lost(const Turn& turn, std::size_t c, Seconds time, const WireUse& wire) const {
    if (taken_[c] == turns_[c].size()) return 0.0;
    const Turn& next = turns_[c][taken_[c]];
    if (turn.kind != Kind::forward && next.kind != Kind::forward) return 0.0;
    const TurnTimes& beside = stages_[static_cast<std::size_t>(next.stage)].turn(next.kind, place_of(next));
    return send_delay(time.value() * wire.busy, beside.wires[wire_of(wire)], beside.total.value());
  }

  [[nodiscard]] bool shares(std::size_t lane) const { return !shared_.empty() && !shared_[lane].empty(); }

  void send(const Turn& turn, std::size_t c) {
    const StageTimes& stage = stages_[static_cast<std::size_t>(turn.stage)];
    const bool forward = turn.kind == Kind::forward;
    const Seconds alone = forward ? stage.send_forward : stage.send_backward, ready = free_[c];
    const WireUse& wire = forward ? stage.forward_wire : stage.backward_wire;
    const double delay = lost(turn, c, alone, wire);
    const std::size_t lane = lane_of(c, forward);
    if (shares(lane))
      return messages_.send(lane, ready.value(), alone.value() * wire.busy + delay, alone.value() * (1 - wire.busy),
                            taken_[c] - 1);
    const Seconds time = alone + Seconds{delay};
    const Seconds start = std::max(ready, channels_[lane]);
    channels_[lane] = start + time;
    if (alone.value() > 0) {  // its latency takes no wire
      double& until = wires_[c][wire_of(wire)];
      until = std::max(until, (channels_[lane] - alone * (1 - wire.busy)).value());
    }
    arrive(c, taken_[c] - 1, time, {start, channels_[lane]});
  }

  void note(const MeetingMessages::Arrived& arrived) {
    const Span sent{Seconds{arrived.start}, Seconds{arrived.there}};
    arrive(arrived.lane / 2, arrived.number, sent.end - sent.start, sent);
  }

  // What the coordinate's turn of that number sends.
  void arrive(std::size_t c, std::size_t number, Seconds time, Span sent) {
    const Turn& turn = turns_[c][number];
    TurnInTime& own = table_[c][number];
    own.sends = time;
    if (time.value() > 0) own.sent = sent;
    const bool forward = turn.kind == Kind::forward;
    (forward ? forward_ : backward_)[index(turn.stage, turn.micro_batch)] = {own.span.end, sent.end, true};
    if (!shared_.empty()) begin_if_ready((c + (forward ? 1 : coordinates_ - 1)) % coordinates_);
  }

  static constexpr std::size_t between_nodes = 1;  // by wire_of()

  const Turns& turns_;
  const std::vector<StageTimes>& stages_;
  std::size_t coordinates_;
  std::vector<Seconds> free_;                 // by coordinate
  std::vector<Arrival> forward_, backward_;   // by micro-batch and stage that sends
  std::vector<Seconds> channels_;             // by lane that shares no wire: free from here on
  std::vector<std::size_t> taken_;            // turns that have ended, by coordinate
  std::vector<std::array<double, 2>> wires_;  // by coordinate: busy until then with what it sends and nobody meets
  std::vector<int> left_;                     // by stage: backward turns to come
  std::vector<bool> begun_;
  std::vector<std::span<const SharedWire>> shared_;  // by lane; none where no lane shares a wire
  MeetingMessages messages_;                         // of these lanes
  Earliest ends_;                                    // of turns, by coordinate
  Timetable table_;
};

}  // namespace

Timetable timetable(const Turns& turns, const std::vector<StageTimes>& stages, int micro_batches,
                    const Cancelled& cancelled) {
  return TimetableMaker(turns, stages, micro_batches).make(cancelled);
}

}  // namespace sibyl

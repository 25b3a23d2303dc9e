#include "oracle/simulate/schedule_walk.h"

#include <algorithm>

#include "oracle/simulate/timetable.h"

namespace sibyl {
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

// A coordinate's turns as they lie in time, and what they add up to but for what follows the last of them.
CoordinateTimes through_turns(const std::vector<Turn>& turns, const std::vector<TurnInTime>& in_time,
                              const std::vector<StageTimes>& stages) {
  CoordinateTimes own;
  TimeBreakdown& parts = own.step.breakdown;
  Seconds free;
  own.turns.reserve(in_time.size());
  for (std::size_t i = 0; i < in_time.size(); ++i) {
    const Turn& turn = turns[i];
    const TurnInTime& taken = in_time[i];
    const StageTimes& stage = stages[static_cast<std::size_t>(turn.stage)];
    const TurnTimes& times = stage.turn(turn.kind, taken.place);
    own.links += taken.link;
    parts.communication_exposed += taken.link;
    parts.bubble += taken.span.start - free - taken.link;
    (turn.kind == Turn::Kind::forward ? parts.forward : parts.backward) += times.total - times.exchanged - times.host;
    parts.host += times.host;
    parts.communication_exposed += times.exchanged + taken.delay;
    parts.communication_total += times.exchanges + stage.gathers;
    Seconds behind;
    if (times.messages.value() > 0) {
      // The wire is the coordinate's: what another of its stages still exchanges takes its share of it.
      const Seconds alone = taken.span.start + times.messages + taken.delay;
      if (taken.place.last) behind = std::max(Seconds{}, own.messages_end + stage.own_messages - alone);
      own.messages_end = std::max(own.messages_end, alone + behind);
    }
    parts.communication_total += taken.sends;
    free = taken.span.end;
    own.turns.push_back({turn, taken.place, taken.span, taken.delay, taken.sent, behind});
  }
  return own;
}

// `free`: when its last turn has ended; `c`: which it is.
void finish(CoordinateTimes& own, Seconds free, std::size_t c, std::size_t coordinates,
            const std::vector<StageTimes>& stages, const CoordinateTail& then) {
  TimeBreakdown& parts = own.step.breakdown;
  const Seconds end = std::max(free, own.messages_end);
  parts.communication_exposed += end - free;
  parts.bubble += then.wait;
  own.tail = then;
  own.step.total = end + then.total();
  for (std::size_t s = c; s < stages.size(); s += coordinates) {
    const TailTimes& tail = stages[s].tail;
    parts.optimizer += tail.total - tail.host - tail.messages - tail.copies;
    parts.offload_exposed += tail.copies;
    parts.offload_total += tail.copies_all;
    parts.host += tail.host;
    parts.communication_exposed += tail.messages;
    parts.communication_total += tail.messages + stages[s].messages;
  }
}

}  // namespace

SimulatedPipeline walk_schedule(const Turns& turns, const std::vector<StageTimes>& stages, int micro_batches,
                                const Cancelled& cancelled) {
  const Timetable table = timetable(turns, stages, micro_batches, cancelled);
  SimulatedPipeline result;
  std::vector<Seconds> free, ends;
  for (std::size_t c = 0; c < turns.size(); ++c) {
    result.coordinates.push_back(through_turns(turns[c], table[c], stages));
    free.push_back(table[c].empty() ? Seconds{} : table[c].back().span.end);
    ends.push_back(std::max(free[c], result.coordinates[c].messages_end));
  }
  const std::vector<Seconds> after = after_ties(stages, ends);
  const std::vector<CoordinateTail> then = tails(stages, after);
  for (std::size_t c = 0; c < turns.size(); ++c) {
    if (after[c] > ends[c]) result.coordinates[c].messages_end = after[c];
    finish(result.coordinates[c], free[c], c, turns.size(), stages, then[c]);
    if (result.coordinates[c].step.total > result.coordinates[result.slowest].step.total) result.slowest = c;
  }
  result.step = result.coordinates[result.slowest].step;
  return result;
}

}  // namespace sibyl

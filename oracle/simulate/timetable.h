// When each turn of a schedule begins and ends, and each message between its stages sets out and is there.
//
// A turn begins when its coordinate is free and what it waits for is there. What a stage sends goes out when its turn
// has ended, one message at a time in each direction.
//
// Turns are gone through in the order of what waits for what. Where messages of several lanes cross one wire between
// nodes (cost/shared_wires.h) what one takes depends on what sets out while it is on its way, so there turns and
// messages are gone through in the order of time (simulate/meeting_messages.h).
#pragma once

#include <vector>

#include "base/cancelled.h"
#include "oracle/plan/pipeline/schedules.h"
#include "oracle/simulate/stage_times.h"

namespace sibyl {

struct TurnInTime {
  Place place;
  Span span;
  Seconds delay;  // of that: its exchanges share the wire with what its rank sends
  Seconds link;   // of the wait before it: what it waits for is on its way
  Seconds sends;  // what its message to a neighbour takes
  Span sent;      // and when it is on its way; empty where it sends nothing
};

// By coordinate, as `turns` has them.
using Timetable = std::vector<std::vector<TurnInTime>>;

// Cancelled: of the turns until then.
Timetable timetable(const Turns& turns, const std::vector<StageTimes>& stages, int micro_batches,
                    const Cancelled& cancelled = {});

// A turn after which parameters' gradients are those of one more micro-batch.
inline bool closes(const Turn& turn) {
  return turn.kind == Turn::Kind::backward || turn.kind == Turn::Kind::backward_weight;
}

}  // namespace sibyl

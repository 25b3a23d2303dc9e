// What a pipeline's schedule is, in numbers, and how many passes of it are on their way when.
#pragma once

#include "oracle/plan/pipeline/balance.h"
#include "oracle/plan/pipeline/schedules.h"

namespace sibyl::closed {

struct ScheduleShape {
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int coordinates = 1, chunks = 1, micro_batches = 1;

  [[nodiscard]] int passes() const { return micro_batches * chunks; }  // of a coordinate, each way
};

// Passes forward of a coordinate before its first one that a pass backward follows, where it is interleaved.
int interleaved_warm_up(const ScheduleShape& shape, int coordinate);
// Of the first x passes of a coordinate each way, taken round by round as interleaved() has them, those through one
// chunk: the `nth` in its round.
int through_chunk(const ScheduleShape& shape, int x, int nth);

// As that of its turns (plan/pipeline/balance.h).
InFlight in_flight(const ScheduleShape& shape);

}  // namespace sibyl::closed

// A stage's step, or a turn of it, as tasks, messages and copies for a device's streams (simulate/streams.h), and what
// they stand for.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/cancelled.h"
#include "oracle/cost/price.h"
#include "oracle/plan/plan.h"
#include "oracle/simulate/step.h"
#include "oracle/simulate/streams.h"

namespace sibyl {

// The tasks of a step in order, what goes on beside them, and where its parts end.
struct StepProgram {
  std::vector<Task> tasks;
  std::vector<Message> messages;
  struct Origin {
    std::size_t step = 0;
    Turn turn;
    bool exchange = false;
    bool again = false;                    // forward, for backward's sake
    std::optional<std::size_t> unit = {};  // the rank's part is copied into what is gathered of it
    bool sums = false;                     // parts of two micro-batches' gradients are added up
  };
  std::vector<Origin> origins;  // of each task
  struct Sent {
    bool unit = false;  // gathered; else a bucket
    std::size_t index = 0;
  };
  std::vector<Sent> sent;       // of each message
  std::vector<Message> copies;  // of what segments keep outside, and of units' parts that lie there
  struct Moved {
    bool unit = false;      // its part; else what a segment keeps
    std::size_t index = 0;  // of the unit, or of the segment
    OffloadCopy::Way way = OffloadCopy::Way::out;
  };
  std::vector<Moved> moved;  // of each copy
  std::size_t needed_copies = 0;    // of a turn alone: so many of the first copies must be done before it is
  Seconds forward, backward, tail;  // compute only; tail: after all messages (copies back and updates)
  Seconds copies_back;
  Seconds hidden;               // of exchanges between operations: what products beside them hide
  std::optional<Seconds> norm;  // of the tail: until that over all stages can be summed
  Seconds tail_messages;
  Seconds tail_copies, copies_waited;  // of the tail: state that is moved; and what it waits for that
  double tail_launches = 0;            // in dispatches
};

StepProgram step_program(const Stage& stage, const PricedStage& priced, const Relief& relief,
                         const Cancelled& cancelled = {});
// Of one turn alone, with the messages that it hands out; no tail.
StepProgram turn_program(const Stage& stage, const PricedStage& priced, const Relief& relief, Turn turn, Place place);
// What is done once all messages are there.
StepProgram tail_program(const Stage& stage, const PricedStage& priced, const Relief& relief);

}  // namespace sibyl

// The order in which pipeline stages take their passes over a step's micro-batches.
//
// S coordinates hold V stages ("chunks") each: stage c S + i lies on coordinate i. Times of a stage's passes are f
// forward and b backward, of which w is the gradients of weights. Of S V equal stages and m micro-batches, links free:
//
//   gpipe        all forwards, then all backwards                     idle (S - 1)(f + b)      in flight m
//   1f1b         after S - i - 1 forwards one backward for each       idle (S - 1)(f + b)      in flight S - i
//   interleaved  the same over V smaller stages, S micro-batches      idle (S - 1)(f + b)      in flight S + (S - 1 - 2 i) / V …
//                of a chunk at a time; f and b are a chunk's          (1/V of the others')     (in whole stages' worth)
//   zero-bubble  ZB-H1: 1f1b with the gradients of weights put off    idle (S - 1)(f + b - 2w) in flight S
//                by i micro-batches, into the idle time
//
// docs/pipeline.md derives these. Sources: Huang et al., "GPipe" (2019); Narayanan et al., "Memory-efficient
// pipeline-parallel DNN training" (2021: PipeDream-flush, which is 1f1b) and "Efficient large-scale language model training on
// GPU clusters" (2021: interleaved); Qi et al., "Zero bubble pipeline parallelism" (2023).
#pragma once

#include <vector>

#include "base/result.h"
#include "oracle/plan/plan.h"

namespace sibyl {

struct PipelineShape {
  int coordinates = 1;  // S
  int chunks = 1;       // V
  int micro_batches = 1;
};

using Turns = std::vector<std::vector<Turn>>;  // by coordinate

// To add a schedule: its function here, its name in Strategy's PipelineSchedule, and its line in the table of schedules.cpp.
Turns gpipe(const PipelineShape& shape);
Turns one_forward_one_backward(const PipelineShape& shape);
Turns interleaved(const PipelineShape& shape);
Turns zero_bubble(const PipelineShape& shape);

// Can the schedule be had for this shape? Else an Error of code infeasible.
Result<void> check_shape(PipelineSchedule schedule, const PipelineShape& shape);
// The turns of a strategy's schedule. Fails, code infeasible, where it cannot be had for this shape.
Result<Turns> make_schedule(PipelineSchedule schedule, const PipelineShape& shape);

// What every schedule must obey: each stage, on its coordinate, takes each micro-batch forward once and backward once
// (in one turn, or in its two parts), forward first; and no turn waits for itself, through the order of any coordinate
// and what stages hand each other. With sends that do not wait, the last is freedom from deadlock. The Error says what is
// broken.
Result<void> check_schedule(const Turns& turns, const PipelineShape& shape);

// Calls visit(turn) for every turn in an order in which each follows what it waits for. False: there is none.
bool in_order(const Turns& turns, int stages, const std::function<void(const Turn&)>& visit);

}  // namespace sibyl

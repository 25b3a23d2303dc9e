// One training step of a pipeline in time. Two levels: each turn of each stage by itself (simulate/step.h), and above
// it the turns of all coordinates, each starting when its coordinate is free and what it waits for has arrived.
//
// Ranks of one coordinate are alike, so one of each is followed. What a stage sends goes out when its turn has ended,
// one transfer at a time between two coordinates in each direction; nobody computes it away. Gradients go as in one
// stage alone; those of parameters that several stages hold when all of these have ended. The step is one of many that
// follow each other (simulate/successive_steps.h): time 0 is when the first coordinate begins it.
#pragma once

#include <vector>

#include "base/cancelled.h"
#include "oracle/cost/price.h"
#include "oracle/plan/plan.h"
#include "oracle/simulate/step.h"

namespace sibyl {

struct TimedTurn {
  Turn turn;
  Place place;
  Span span;
  Seconds delay;   // of that: its exchanges share the wire with what its rank sends
  Span sent;       // the transfer to its neighbour; empty where it sends nothing
  Seconds behind;  // so much later its gradients are there: other stages of its rank exchange theirs
  double stretch = 1;  // what it has left to exchange when it ends takes so much longer: later turns and sends share it
};

// Where in the step something lies that turn_timeline() has of the turn by itself. By how much its exchanges are
// delayed is spread over all of it, and by how much its messages are, over what is left of these at its end.
Span in_step(const TimedTurn& timed, const NamedSpan& span);

// What a coordinate does after its last message: its share of the norm by which all gradients are clipped, waiting
// until all have theirs, and the rest.
struct CoordinateTail {
  Seconds before, wait, after;

  [[nodiscard]] Seconds total() const { return before + wait + after; }
};

struct CoordinateTimes {
  Seconds begin;  // until then it has been at the step before
  std::vector<TimedTurn> turns;
  Seconds messages_end;  // of its last message; 0 without any
  Seconds links;         // waited for what its neighbours sent
  CoordinateTail tail;
  SimulatedStep step;  // from its beginning on; bubble: idle, but for what its links take

  [[nodiscard]] Seconds end() const { return begin + step.total; }
};

struct SimulatedPipeline {
  std::vector<CoordinateTimes> coordinates;
  std::size_t slowest = 0;  // the last to end
  SimulatedStep step;       // its
};

// `priced` is parallel to plan.stages. Cancelled: as many coordinates, and numbers that mean nothing.
SimulatedPipeline simulate_pipeline(const Plan& plan, const std::vector<PricedStage>& priced, Slowdown slowdown,
                                    const Relief& relief = {}, const Cancelled& cancelled = {});

// Why a pipeline's step takes longer than the work of one device.
struct PipelineWaits {
  Seconds links;      // the last coordinate to end waits for what its neighbours send
  Seconds imbalance;  // what the step would lose if every stage took what they take on average
  Seconds bubble;     // that coordinate idles, beyond the imbalance: so would even stages
};
PipelineWaits waits_of(const Plan& plan, const std::vector<PricedStage>& priced, Slowdown slowdown,
                       const SimulatedPipeline& pipeline, const Cancelled& cancelled = {});

}  // namespace sibyl

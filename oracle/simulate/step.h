// One training step of one rank in time: compute and communication laid beside each other.
//
// simulate_step expands every kernel and every message (simulate/streams.h). closed_step gives the same by formula
// (closed_streams); it is exact where the host never
// waits, and an upper bound within the host wait elsewhere. The two are tested against each other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oracle/cost/price.h"
#include "oracle/prediction.h"
#include "oracle/simulate/streams.h"

namespace sibyl {

struct SimulatedStep {
  Seconds total;
  TimeBreakdown breakdown;
};

// What-if factors on resources, to find what holds a step back: 0.5 = takes half the time.
struct Relief {
  double compute_bound = 1.0;  // kernels bound by arithmetic
  double memory_bound = 1.0;   // kernels bound by memory
  double network = 1.0;
  double host = 1.0;
};

SimulatedStep simulate_step(const Stage& stage, const PricedStage& priced, Slowdown slowdown, const Relief& relief = {});
SimulatedStep closed_step(const Stage& stage, const PricedStage& priced, Slowdown slowdown);

// The simulated step as spans with names (oracle/plan/names.h), for timelines; those of a stream do not overlap.
struct NamedSpan {
  enum class Kind { forward, backward, exchange_forward, exchange_backward, message, gather, launch, update };
  std::string name;
  std::string_view track;
  Span span;
  Kind kind = Kind::forward;
  std::size_t index = 0;  // of the message or unit, or of the plan's step
  int micro_batch = 0;
};
std::vector<NamedSpan> timeline(const Graph& graph, const Stage& stage, const PricedStage& priced, Slowdown slowdown);

}  // namespace sibyl

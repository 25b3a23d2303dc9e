// One training step of one rank in time: compute and communication laid beside each other.
//
// Every kernel and every message is expanded (simulate/streams.h). What is known without that is in oracle/closed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancelled.h"
#include "oracle/cost/price.h"
#include "oracle/prediction.h"
#include "oracle/simulate/rank_wires.h"
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
  double offload = 1.0;  // copies between the device and where state lies outside it
};

// What is cancelled ends with numbers that mean nothing; so do the others here.
SimulatedStep simulate_step(const Stage& stage, const PricedStage& priced, Slowdown slowdown, const Relief& relief = {},
                            const Cancelled& cancelled = {});

// One turn of a stage by itself, from when its rank is free and what it waits for is there.
struct TurnTimes {
  Seconds total;      // until the rank is free again
  Seconds exchanged;  // of which: waited for between operations, and for parameters to be gathered
  Seconds host;       // of which: waited for launches
  Seconds messages;   // when the last message that it hands to the network has ended; 0 without any
  Seconds exchanges = {};  // between operations, had they the wires to themselves
  Seconds copied = {};     // of the total: waited for what lies outside the device
  Seconds copies = {};     // all of these copies, hidden or not
  TurnWires wires = {};    // with the parameters that it gathers; a turn of weights alone is not followed
};
// A stage's first backward turn writes parameters' gradients, later ones add to them, and the last one exchanges them.
struct Place {
  bool first = true, last = true;
};
TurnTimes simulate_turn(const Stage& stage, const PricedStage& priced, Slowdown slowdown, Turn turn, Place place,
                        const Relief& relief = {}, const Cancelled& cancelled = {});

// What a rank does once all its messages are there: copies back and updates.
struct TailTimes {
  Seconds total;
  Seconds host;      // of which: waited for launches
  Seconds messages;  // of which: norms summed and updated parts gathered
  Seconds copies = {};               // of which: waited for state that lies outside the device
  Seconds copies_all = {};           // all its copies, hidden or not
  std::optional<Seconds> norm = {};  // of which: until gradients' norm over all stages can be summed, where they are clipped
};
TailTimes tail_times(const Stage& stage, const PricedStage& priced, const Relief& relief = {});

// The simulated step as spans with names (oracle/plan/names.h), for timelines; those of a stream do not overlap.
struct NamedSpan {
  enum class Kind {
    forward,
    backward,
    exchange_forward,
    exchange_backward,
    message,
    gather,
    unit_copy,
    launch,
    update,
    copy,
    leave_kept,
    bring_kept,
    bring_part
  };
  std::string name;
  std::string_view track;
  Span span;
  Kind kind = Kind::forward;
  std::size_t index = 0;  // of the message, unit, copy or segment, or of the plan's step
  int micro_batch = 0;
  static constexpr std::size_t nothing = static_cast<std::size_t>(-1);
  std::size_t after = nothing;  // the span of the same list that it waited for; nothing: it could begin at once
};
std::vector<NamedSpan> turn_timeline(const Graph& graph, const Stage& stage, const PricedStage& priced,
                                     Slowdown slowdown, Turn turn, Place place);
std::vector<NamedSpan> timeline(const Graph& graph, const Stage& stage, const PricedStage& priced, Slowdown slowdown,
                                const Cancelled& cancelled = {});

}  // namespace sibyl

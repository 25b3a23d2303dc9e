// A pipeline's schedule in time, from what each turn of each stage takes by itself.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "base/cancelled.h"
#include "oracle/plan/pipeline/schedules.h"
#include "oracle/simulate/pipeline.h"

namespace sibyl {

// What the schedule needs to know of a stage.
struct StageTimes {
  std::array<TurnTimes, 10> turns;  // by slot()
  Seconds send_forward, send_backward;
  WireUse forward_wire, backward_wire;  // of these
  Passage forward_passage, backward_passage;
  TailTimes tail;
  struct Tied {
    std::vector<int> stages;
    Seconds time;
  };
  std::vector<Tied> tied;
  Seconds messages;      // in all, each by itself
  Seconds own_messages;  // of these, those that it exchanges when it is ready, whatever other stages do
  WireTime own_wires{};  // for how long those keep the wires busy
  Seconds gathers;       // of parameters, in one turn

  [[nodiscard]] const TurnTimes& turn(Turn::Kind kind, Place place = {}) const { return turns[slot(kind, place)]; }
  [[nodiscard]] static std::size_t slot(Turn::Kind kind, Place place);
};

// `time` prices a turn of the stage by itself.
StageTimes stage_times(const Stage& stage, const PricedStage& priced, const Relief& relief,
                       const std::function<TurnTimes(Turn, Place)>& time);

// Cancelled: of the turns until then, of whichever step.
SimulatedPipeline walk_schedule(const Turns& turns, const std::vector<StageTimes>& stages, int micro_batches,
                                const Cancelled& cancelled = {});

}  // namespace sibyl

// What a pipeline's schedule needs to know of a stage: what each of its turns takes by itself, what it sends, and what
// follows once all messages are there.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "oracle/cost/price.h"
#include "oracle/cost/shared_wires.h"
#include "oracle/plan/plan.h"
#include "oracle/simulate/step.h"

namespace sibyl {

struct StageTimes {
  std::array<TurnTimes, 10> turns;  // by slot()
  Seconds send_forward, send_backward;
  WireUse forward_wire, backward_wire;                           // of these
  std::span<const SharedWire> forward_shared, backward_shared;  // of these wires those that others use, too; not its own
  TailTimes tail;
  struct Tied {
    std::vector<int> stages;
    Seconds time;
  };
  std::vector<Tied> tied;
  Seconds messages;      // in all, each by itself
  Seconds own_messages;  // of these, those that it exchanges when it is ready, whatever other stages do
  Seconds gathers;       // of parameters, in one turn

  [[nodiscard]] const TurnTimes& turn(Turn::Kind kind, Place place = {}) const { return turns[slot(kind, place)]; }
  [[nodiscard]] static std::size_t slot(Turn::Kind kind, Place place);
};

// `time` prices a turn of the stage by itself. `priced` must outlive them.
StageTimes stage_times(const Stage& stage, const PricedStage& priced, const Relief& relief,
                       const std::function<TurnTimes(Turn, Place)>& time);

}  // namespace sibyl

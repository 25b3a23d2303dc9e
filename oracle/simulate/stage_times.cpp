#include "oracle/simulate/stage_times.h"

namespace sibyl {

using Kind = Turn::Kind;

std::size_t StageTimes::slot(Kind kind, Place place) {
  const std::size_t at = (place.first ? 0U : 1U) + (place.last ? 0U : 2U);
  switch (kind) {
    case Kind::forward: return 0;
    case Kind::backward_input: return 1;
    case Kind::backward: return 2 + at;
    case Kind::backward_weight: return 6 + at;
  }
  return 0;
}

StageTimes stage_times(const Stage& stage, const PricedStage& priced, const Relief& relief,
                       const std::function<TurnTimes(Turn, Place)>& time) {
  StageTimes times;
  const auto price = [&](Kind kind, Place place) {
    times.turns[StageTimes::slot(kind, place)] = time(Turn{kind, 0, 0}, place);
  };
  price(Kind::forward, {});
  for (const bool first : {true, false})
    for (const bool last : {true, false}) {
      if (!splits_backward(stage)) price(Kind::backward, {first, last});
      if (splits_backward(stage)) price(Kind::backward_weight, {first, last});
    }
  if (splits_backward(stage)) price(Kind::backward_input, {});
  if (priced.send_forward) times.send_forward = priced.send_forward->time * relief.network;
  if (priced.send_backward) times.send_backward = priced.send_backward->time * relief.network;
  times.forward_wire = priced.forward_wire;
  times.backward_wire = priced.backward_wire;
  times.forward_shared = priced.forward_shared;
  times.backward_shared = priced.backward_shared;
  times.tail = tail_times(stage, priced, relief);
  for (const PricedMessage& gather : priced.unit_gathers) times.gathers += gather.estimate.time.time * relief.network;
  for (const PricedMessage& message : priced.messages) {
    const Seconds duration = message.estimate.time.time * relief.network;
    times.messages += duration;
    if (message.stages.empty())
      times.own_messages += duration;
    else
      times.tied.push_back({message.stages, duration});
  }
  return times;
}

}  // namespace sibyl

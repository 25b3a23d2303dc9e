#include "oracle/plan/dropless.h"

#include <algorithm>

namespace sibyl {
namespace {

// Of the slots of all experts, the share that tokens fill: of each token as many as it chose.
double filled(const Stage& program, const Compute& step, const Dispatch& dispatch) {
  const auto slots = static_cast<double>(program[step.outputs[0]].shape.front() * dispatch.capacity);
  const auto choices = static_cast<double>(dispatch.tokens * program[step.inputs[1]].shape.back());
  return std::min(1.0, choices / slots);
}

}  // namespace

void send_filled_slots(Stage& program) {
  double of_layer = 1.0;  // of slots between the two
  for (Step& step : program.steps) {
    if (const auto* compute = std::get_if<Compute>(&step)) {
      if (const auto* dispatch = std::get_if<Dispatch>(&compute->attributes))
        of_layer = filled(program, *compute, *dispatch);
      else if (std::holds_alternative<Combine>(compute->attributes))
        of_layer = 1.0;
      continue;
    }
    auto& exchange = std::get<Exchange>(step);
    const bool deals_out = exchange.axis == MeshAxis::expert || exchange.axis == MeshAxis::tensor;
    if (deals_out && exchange.forward.motion == Motion::all_to_all) exchange.filled = of_layer;
  }
}

}  // namespace sibyl

#include "oracle/plan/regathered.h"

#include "oracle/plan/precision.h"
#include "oracle/plan/recompute.h"

namespace sibyl {

std::vector<bool> regathered_tensors(const Stage& stage, const Strategy& strategy) {
  std::vector<bool> result(stage.tensors.size(), false);
  if (!strategy.sequence || !has_half_weights(strategy)) return result;
  const std::vector<bool> again = recomputed_steps(stage);
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    if (const auto* exchange = std::get_if<Exchange>(&stage.steps[i]); exchange && !again[i])
      result[exchange->output.index()] =
          exchange->axis == MeshAxis::tensor && exchange->forward.motion == Motion::all_gather;
    else if (const auto* compute = std::get_if<Compute>(&stage.steps[i]);
             compute && std::holds_alternative<GroupedLinear>(compute->attributes))
      result[compute->inputs[0].index()] = false;  // slots are kept as experts read them
  }
  return result;
}

bool frees_sent(const Strategy& strategy) { return has_half_weights(strategy); }

bool gradients_in_buckets(const Strategy& strategy) { return has_half_weights(strategy) && strategy.zero < 2; }

}  // namespace sibyl

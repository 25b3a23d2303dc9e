#include "oracle/memory/least_state.h"

#include "oracle/plan/offload.h"
#include "oracle/plan/precision.h"

namespace sibyl {

Bytes least_state(double parameters, const Strategy& s) {
  const double replica = static_cast<double>(s.devices_per_replica()) / (s.depth * s.height * s.width);
  const double held = parameters / replica;
  const bool half = has_half_weights(s);
  const bool here = s.optimizer_tier == Tier::device;
  const double weight = half ? 2 : 4, gradient = sums_in_full(s) ? 4 : weight;
  const double state = here ? 4.0 * optimizer_states(s.optimizer) + (half ? 4 : 0) : 0.0;
  // Ranks that share images are replicas of the weights, too, and have parts of them.
  const double share = 1.0 / ((s.zero_ranks > 0 ? s.zero_ranks : s.data) * s.depth * s.height * s.width);
  const double kept = s.parameter_tier == Tier::device ? share : 0.0;
  return Bytes{held * (weight * (s.zero > 2 ? kept : 1.0) + gradient * (s.zero > 1 ? share : 1.0) +
                       state * (s.zero > 0 ? share : 1.0))};
}

}  // namespace sibyl

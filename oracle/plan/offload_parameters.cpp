#include "oracle/plan/offload_parameters.h"

#include "oracle/plan/zero.h"

namespace sibyl {

Result<void> check_parameters(const Strategy& strategy) {
  if (strategy.parameter_tier == Tier::device) return {};
  const std::string where = "--offload " + offload_text(strategy);
  if (strategy.zero != 3)
    return fail(ErrorCode::infeasible, "of parameters those lie outside the device that replicas share", where,
                "give --zero 3, too");
  if ((strategy.zero_ranks > 0 ? strategy.zero_ranks : strategy.data) * strategy.samplers() == 1)
    return fail(ErrorCode::infeasible, "no replica shares parameters with another", where, "more replicas");
  return {};
}

std::int64_t part_bytes(const Stage& stage, std::size_t sync, std::size_t bucket, int place) {
  const GradientSync& own = stage.gradients[sync];
  return part_of(own.buckets[bucket], own.parts, place).size() *
         static_cast<std::int64_t>(size_in_bytes(own.buckets[bucket].dtype));
}

int times_gathered(const Stage& stage, const ParameterUnit& unit) { return stays_gathered(stage, unit) ? 1 : 2; }

}  // namespace sibyl

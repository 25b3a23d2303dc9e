// What devices wait for each other in a pipeline, but for what is sent.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "oracle/limits/finders.h"
#include "oracle/plan/pipeline/schedules.h"

namespace sibyl::limits {
namespace {

// Those that idle less, as --schedule takes them; empty where one of them is taken already.
std::string better_schedules(const Strategy& s) {
  if (s.schedule == PipelineSchedule::interleaved || s.schedule == PipelineSchedule::zero_bubble) return "";
  constexpr int chunks = 2;
  const PipelineShape shape{s.pipeline, chunks, static_cast<int>(s.accumulation)};
  return check_shape(PipelineSchedule::interleaved, shape) ? "interleaved:2, zero-bubble" : "zero-bubble";
}

}  // namespace

void idling(const Found& f, Limits& limits) {
  const auto& stages = f.prediction.stages;
  const auto longest = std::max_element(stages.begin(), stages.end(), [](const StageCost& a, const StageCost& b) {
    return a.forward + a.backward < b.forward + b.backward;
  });
  if (longest != stages.end())
    add_cost(f, f.waits.imbalance, limit_name::pipeline_imbalance,
             fmt::format("longest stage, from {}", longest->first), "other cuts (--stages); fewer stages", limits);
  const std::string schedules = better_schedules(f.plan.strategy);
  add_cost(f, f.waits.bubble, limit_name::pipeline_bubble,
           fmt::format("{} micro-batches over {} stages", f.plan.strategy.accumulation, stages.size()),
           those_that_suit({{"more micro-batches", f.has_samples_to_part()},
                            {"fewer stages"},
                            {fmt::format("another order of passes (--schedule {})", schedules), !schedules.empty()}}),
           limits);
}

}  // namespace sibyl::limits

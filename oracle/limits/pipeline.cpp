// What devices wait for each other in a pipeline, but for what is sent.
#include <fmt/format.h>

#include <algorithm>

#include "oracle/limits/finders.h"

namespace sibyl::limits {

void idling(const Found& f, Limits& limits) {
  const auto& stages = f.prediction.stages;
  const auto longest = std::max_element(stages.begin(), stages.end(), [](const StageCost& a, const StageCost& b) {
    return a.forward + a.backward < b.forward + b.backward;
  });
  if (longest != stages.end())
    add_cost(f, f.waits.imbalance, "pipeline imbalance", fmt::format("longest stage, from {}", longest->first),
             "other cuts (--stages); fewer stages", limits);
  add_cost(f, f.waits.bubble, "pipeline bubble",
           fmt::format("{} micro-batches over {} stages", f.plan.strategy.accumulation, stages.size()),
           "more micro-batches; fewer stages; another order of passes (--schedule interleaved:2, zero-bubble)", limits);
}

}  // namespace sibyl::limits

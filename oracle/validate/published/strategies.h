// A published row's degrees, batch and precision as a Strategy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "oracle/strategy.h"
#include "oracle/validate/published/frameworks.h"
#include "oracle/validate/published/models.h"
#include "oracle/validate/published/row.h"
#include "profiler/device.h"

namespace sibyl::published {

struct StrategyRecipe {
  Strategy strategy;
  // Besides: every second block runs again for backward (torchtitan's selective recomputing), priced halfway between.
  bool half_recomputed = false;
  // The row does not say how many samples a micro-batch has: one with pipelines, else all of a replica's, or, where
  // these do not fit, as many as do.
  bool micro_batch_open = false;
  std::vector<std::string> assumed;
};

// An Error where the row does not state enough, or states what is not modelled; its message says which.
Result<StrategyRecipe> strategy_of(const Row& row, const FrameworkRecipe& framework, const ModelRecipe& model,
                                   const Device& device);

// Of one replica.
std::int64_t micro_batch_of(const Strategy& strategy);
// Makes the micro-batch smaller, by the least factor that it has; false: it is one sample.
bool make_micro_batch_smaller(Strategy& strategy);

}  // namespace sibyl::published

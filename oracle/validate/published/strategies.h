// A published row's degrees, batch and precision as a Strategy.
#pragma once

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
  std::vector<std::string> assumed;
};

// An Error where the row does not state enough, or states what is not modelled; its message says which.
Result<StrategyRecipe> strategy_of(const Row& row, const FrameworkRecipe& framework, const ModelRecipe& model,
                                   const Device& device);

}  // namespace sibyl::published

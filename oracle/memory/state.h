// What is there before a step and stays: weights, optimizer state, buckets.
#pragma once

#include <vector>

#include "oracle/memory/ledger.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// f32 tensors of the parameter's shape that the optimizer keeps for it.
int optimizer_states(OptimizerKind kind);

void take_state(const Stage& stage, const Strategy& strategy, Ledger& ledger);

// LAMB and LARS on parameters that ranks hold by parts: the directions of all updates, each known before the norms are.
std::vector<double> direction_bytes(const Stage& stage);

}  // namespace sibyl

// What is there before a step and stays: weights, optimizer state, buckets.
#pragma once

#include <vector>

#include "oracle/memory/ledger.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// Of state that lies outside the device nothing: it comes for its update.
void take_state(const Stage& stage, const Strategy& strategy, Ledger& ledger);

// LAMB and LARS on parameters that ranks hold by parts: the directions of all updates, each known before the norms are.
std::vector<double> direction_bytes(const Stage& stage);

}  // namespace sibyl

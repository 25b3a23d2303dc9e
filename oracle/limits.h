// What keeps this plan from going faster, or onto more devices, each by name: after Table V of Kahira et al., "An
// oracle for guiding large-scale model/hybrid parallel training of convolutional neural networks" (HPDC 2021).
//
// An extent bounds the degree of an axis: batch, features, filters, channels, heads, sequence, images. A cost takes
// time or memory that grows, or stays, as devices are added: what ranks repeat, what they exchange, what each updates.
// docs/limits.md derives each number. A strategy brings its own: one function in limits.cpp and its line in
// find_limits.
#pragma once

#include <vector>

#include "models/graph.h"
#include "oracle/cost/price.h"
#include "oracle/plan/plan.h"
#include "oracle/prediction.h"

namespace sibyl {

// In the order of docs/limits.md: extents, then costs. `prediction` holds the plan's times and memory.
std::vector<Limit> find_limits(const Graph& graph, const Plan& plan, const Stage& stage, const PricedStage& priced,
                               const Prediction& prediction);

}  // namespace sibyl

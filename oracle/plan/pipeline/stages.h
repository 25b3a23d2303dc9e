// A replica's program as a pipeline's stages, with their schedule, gradient exchanges and updates.
#pragma once

#include <map>

#include "base/result.h"
#include "oracle/plan/buckets.h"
#include "oracle/plan/pipeline/cut.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// `plan` has its strategy and its mesh. Fails, code infeasible, where the program cannot be cut so.
Result<void> add_stages(const Graph& graph, const Stage& whole, const CutCosts& costs, Plan& plan);

// What add_stages() refuses after it cuts: a parameter that two stages of one coordinate hold.
Result<void> check_ties(const Graph& graph, const Stage& whole, const Ties& ties, int coordinates);

// What a stage does beside its program: updates, the exchange of gradients, shards of both, norms, what is recomputed.
void add_state(Stage& stage, const Strategy& strategy, const std::map<LocalTensorId, Tie>& ties);

}  // namespace sibyl

// What context parallelism asks of a model: a sequence of tokens, attention as the only thing that mixes its positions,
// and as many parts of both the sequence and of attention's heads as there are ranks (sharding/rules/heads.cpp).
#pragma once

#include <optional>
#include <string>

#include "oracle/plan/plan.h"

namespace sibyl {

// Fails, code infeasible, where the program has no such sequence, or where one or its heads cannot be divided over
// its ranks; the hint says what can.
Result<void> check_sequence(const Graph& graph, const Stage& whole, const Strategy& strategy);

// Fails, code infeasible, where the program that the ranks of the context axis were given puts a sequence together
// before some attention: what wants it whole is named. Behind the last attention that is done once, and all ranks go on
// alike.
Result<void> check_stays_split(const Graph& graph, const Stage& shared);

// With keys that are to go round (--context-exchange ring): what attention gathers them instead, in a sentence; none
// where all go round.
std::optional<std::string> gathered_instead(const Graph& graph, const Plan& plan);

}  // namespace sibyl

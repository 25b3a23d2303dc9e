// Where a strategy's stages are cut: balanced (cut_table.h), or where the user says.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "oracle/plan/pipeline/cut_table.h"
#include "oracle/plan/pipeline/schedules.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// By stage, at most: micro-batches that it has taken forward and not yet wholly backward; of these, such whose
// backward's second part is still to come.
struct InFlight {
  std::vector<int> all, later;
};
InFlight in_flight(const Turns& turns, int stages);

// Fails, code infeasible, where there are fewer steps to train than stages: before their schedule is made, which may be
// long.
Result<void> check_stages(const Stage& whole, const Strategy& strategy);

// Of a strategy's stages: within memory, 0 for no limit, where that can be. Fails, code infeasible, where there are
// fewer steps to train than stages.
Result<std::vector<std::size_t>> balanced(CutTable& table, StageMemories& memories, const Strategy& strategy,
                                          const InFlight& in_flight, Bytes memory);
// Could they be within memory, however slow? Sometimes where they cannot, never the other way round.
bool possible(CutTable& table, const StageMemory& memory, const Strategy& strategy, const InFlight& in_flight,
              Bytes each);
Result<std::vector<std::size_t>> balanced(const Stage& whole, const Strategy& strategy, const Turns& turns,
                                          const CutCosts& costs);

// The same by hand: the first step of the operation of each name, or of the first one whose name begins with it and a
// separator ("/h.6" means "/h.6/ln_1/…" too). They must stand in the program's order.
Result<std::vector<std::size_t>> by_name(const Graph& graph, const Stage& whole, const Strategy& strategy);

}  // namespace sibyl

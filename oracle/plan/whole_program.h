// The program that a replica runs on one micro-batch when nothing is split: where every plan starts.
#pragma once

#include "oracle/plan/plan.h"

namespace sibyl {

// In the model's own element types; no gradients exchanged, no updates, no schedule.
Stage whole_program(const Graph& graph, std::int64_t micro_batch);

}  // namespace sibyl

// The timeline of a pipeline's step.
#pragma once

#include <vector>

#include "base/cancelled.h"
#include "base/trace.h"
#include "models/graph.h"
#include "oracle/predict.h"

namespace sibyl {

// A process for each coordinate: beside its kernels and messages the turns themselves, and what it sends to its
// neighbours. `kernels`: of turns what they are made of is shown, too. Cancelled: nothing.
std::vector<TraceProcess> trace_pipeline(const Graph& graph, const PlannedStep& step, Backend backend, bool kernels,
                                         const Cancelled& cancelled);

}  // namespace sibyl

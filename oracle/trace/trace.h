// A predicted step as a timeline: what `sibyl trace` writes.
//
// One process for each rank that differs from the others, on it the tracks compute, communication and host (what the
// device waits for: launches, samples from storage, the slowest rank). The last span ends at the predicted step time.
// Spans carry what is known of them: kind, FLOPs and bytes of kernels, bytes and algorithm of messages, and for both
// how the time is known. Those without which the step would be shorter are marked critical: each of them began when
// what it waited for, the critical one before it, was done, on its own rank or on another; laid end to end they last as
// long as the step.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "base/cancelled.h"
#include "base/result.h"
#include "base/trace.h"
#include "oracle/predict.h"

namespace sibyl {

struct PredictedTrace {
  Prediction prediction;  // as of Evaluator::step()
  std::vector<TraceProcess> processes;
};

// `most`: kernels that can be shown. Of a pipeline that has more its turns alone are; another step that has more is an
// Error. So is one that `cancelled` ends (code interrupted).
Result<PredictedTrace> trace_step(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                                  std::size_t most = std::numeric_limits<std::size_t>::max(),
                                  const Cancelled& cancelled = {});

}  // namespace sibyl

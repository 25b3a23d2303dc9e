// A predicted step as a timeline: what `sibyl trace` writes.
//
// One process for each rank that differs from the others, on it the tracks compute, communication and host (what the
// device waits for: launches, samples from storage, the slowest rank). The last span ends at the predicted step time.
// Spans carry what is known of them: kind, FLOPs and bytes of kernels, bytes and algorithm of messages, and for both
// how the time is known.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/trace.h"
#include "oracle/predict.h"

namespace sibyl {

struct PredictedTrace {
  Prediction prediction;
  std::vector<TraceProcess> processes;
};

Result<PredictedTrace> trace_step(const Graph& graph, const Strategy& strategy, const Cluster& cluster);

}  // namespace sibyl

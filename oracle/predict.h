// The one question: how does this graph train with this strategy on this cluster?
//
// Pure: no clocks, no globals; the same answer for the same arguments on any number of threads. A plan that does not fit
// in memory is still priced (`fits` is false); one that cannot be split so, or needs more devices than there are, is an
// Error of code infeasible.
#pragma once

#include <vector>

#include "base/result.h"
#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/prediction.h"
#include "oracle/strategy.h"

namespace sibyl {

Result<Prediction> predict(const Graph& graph, const Strategy& strategy, const Cluster& cluster);

// One prediction per device count. weak: the batch per device stays; strong: the global batch stays.
enum class Scaling { weak, strong };
struct ScalePoint {
  int devices = 1;
  Result<Prediction> prediction;
  double efficiency = 0;  // throughput per device against the first point's
};
std::vector<ScalePoint> scale(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                              const std::vector<int>& device_counts, Scaling scaling);

}  // namespace sibyl

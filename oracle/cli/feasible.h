// The nearest setting that fits in memory, for a plan that does not.
#pragma once

#include <string>

#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/strategy.h"

namespace sibyl::cli {

// A sentence: the fewest micro-batches that fit with the same batch, and the largest batch per device that fits
// as it is; or that not even one sample does.
std::string nearest_fit(const Graph& graph, const Strategy& strategy, const Cluster& cluster);

}  // namespace sibyl::cli

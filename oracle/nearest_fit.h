// The nearest settings that fit in memory, for a plan that does not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/strategy.h"

namespace sibyl {

struct NearestFit {
  std::optional<std::int64_t> micro_batches;  // the fewest that fit with the same batch
  std::optional<std::int64_t> global_batch;   // the largest that fits with as many micro-batches as asked for
  std::optional<Bytes> least;                 // what a device needs where not even one sample fits
};

// `strategy` can be priced and does not fit. Some dozens of predictions; `cancelled` ends them, with what is known by then.
NearestFit nearest_fit(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                       const std::function<bool()>& cancelled = {});

// As --batch takes it: "24/device" where each replica is one device.
std::string batch_text(const Strategy& strategy, std::int64_t global_batch);

// The same as a sentence for people, in the command line's words.
std::string to_text(const NearestFit& fit, const Strategy& strategy);

}  // namespace sibyl

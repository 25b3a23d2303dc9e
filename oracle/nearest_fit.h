// The nearest settings that fit in memory, for a plan that does not.
//
// Tried in the order in which a user would, the least change first: the same batch in more micro-batches, and a smaller
// batch; other plans of the same step on the same devices (smaller_plans.h); those with single samples; and the same on
// twice as many devices, four times as many, and so on, each with the batch that it had. Whatever is named was priced,
// and fits. Of the many plans that there may be only so many are tried (some hundreds of evaluations at most).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/strategy.h"

namespace sibyl {

struct FittingSetting {
  std::string words;  // the options of `sibyl predict` that differ from what was asked for: "--zero 3"
  Strategy strategy;
  Bytes memory;  // that its fullest device must hold
};

struct NearestFit {
  std::vector<FittingSetting> settings;       // the nearest first; empty: none was found
  std::optional<std::int64_t> micro_batches;  // the fewest that fit with the same batch
  std::optional<std::int64_t> global_batch;   // the largest found to fit with as many micro-batches as asked for
  std::optional<Bytes> least;                 // what a device needs where not even one sample fits
  int most_devices = 1;                       // that were tried
};

struct NearestFitOptions {
  bool split = true;         // replicas may be split otherwise, and more devices be named
  bool whole_batch = false;  // a batch is named as that of the whole step, whatever the number of devices
};

// `strategy` can be priced and does not fit. `cancelled` ends the search, with what is known by then.
NearestFit nearest_fit(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                       const std::function<bool()>& cancelled = {}, const NearestFitOptions& options = {});

// As --batch takes it: "24/device" where each replica is one device.
std::string batch_text(const Strategy& strategy, std::int64_t global_batch);

// The same as a sentence for people, in the command line's words.
std::string to_text(const NearestFit& fit);

}  // namespace sibyl

// What is each input worth? The step with every part of the cluster twice as good and half as good, and with the
// settings that are turned most, batch, micro-batches and buckets, twice and half as large.
//
// Each is changed alone, as `sibyl whatif --set` changes it, and the step predicted anew. Twice as good is twice the
// bandwidth, rate, capacity or number, and half the latency, launch time, oversubscription or background; a link that
// nobody else uses has no background to vary. Where the rate of the host link or of storage is not known, it is listed
// only if the strategy offloads over it, and the assumed one is varied (calibration/outside_rates.h). Compared is the
// time of a sample: where the cluster is changed that is the step's, but a step of another batch is another step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/prediction.h"
#include "oracle/strategy.h"

namespace sibyl {

struct Variation {
  std::string setting;            // as --set takes it: "nic.bandwidth=2x", "batch=128"
  Result<Evaluation> evaluation;  // or why it cannot be so
  double change = 0;              // of a sample's time: after / before - 1; 0 where it cannot be so
};

struct Sensitivity {
  std::string name;      // as --set knows it
  std::string title;     // as people call it
  std::string says;      // what it is, in a few words
  std::string now;       // what it is here, with its unit: "25.0 GB/s"; empty where that is not known
  bool resource = true;  // a part of the cluster; else a setting of the training
  Variation twice;       // as good, or as large
  Variation half;

  [[nodiscard]] double effect() const;  // the larger change of the two, without its sign
};

struct Sensitivities {
  Evaluation now;
  std::vector<Sensitivity> inputs;  // the largest effect first; of the same effect, in the order of cluster_keys()
};

struct SensitivityOptions {
  std::function<void(std::size_t done, std::size_t total)> progress = {};
  std::function<bool()> cancelled = {};  // then the answer is an Error of code interrupted
};

// Fails where the strategy as it is cannot be predicted.
Result<Sensitivities> sensitivities(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                                    const SensitivityOptions& options = {});

}  // namespace sibyl

// What keeps this plan from going faster, or onto more devices, each by name: after Table V of Kahira et al., "An
// oracle for guiding large-scale model/hybrid parallel training of convolutional neural networks" (HPDC 2021).
//
// An extent bounds the degree of an axis: batch, layers, features, filters, channels, heads, sequence, images. A cost
// takes time or memory that grows, or stays, as devices are added: what ranks repeat, idle through, exchange, what each
// updates. docs/limits.md derives each number; oracle/limits/ has a file for each kind, and says how to add one.
#pragma once

#include <string_view>
#include <vector>

#include "base/cancelled.h"
#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/cost/price.h"
#include "oracle/plan/plan.h"
#include "oracle/prediction.h"
#include "oracle/simulate/pipeline.h"

namespace sibyl {

// A plan and what is known of its step.
struct PricedPlan {
  const Graph& graph;
  const Cluster& cluster;
  const Plan& plan;
  const std::vector<PricedStage>& priced;  // parallel to plan.stages
  std::size_t slowest = 0;                 // the pipeline's coordinate that ends last, and
  const PipelineWaits& waits;              // what it waits for
  Seconds simulated;                       // the step, but for waiting for the slowest rank and for samples
  const Prediction& prediction;            // times, memory, and stages where there are several
  Cancelled cancelled = {};                // then limits are whatever they are
};

// Those that may be a step's bottleneck, too (oracle/remedies.cpp).
namespace limit_name {
inline constexpr std::string_view pipeline_imbalance = "pipeline imbalance", pipeline_bubble = "pipeline bubble",
                                  gradient_exchange = "gradient exchange", gradient_norms = "norms of gradients",
                                  layer_collectives = "layer-wise collectives", halo_exchange = "halo exchange",
                                  pipeline_links = "pipeline links", reading_samples = "reading samples",
                                  offloading = "offloading";
}  // namespace limit_name

// In the order of docs/limits.md: extents, then costs. Extents are the least of all stages; times are the slowest
// coordinate's, memory the fullest's.
std::vector<Limit> find_limits(const PricedPlan& plan);

}  // namespace sibyl

// What kernels of a pipeline take beside those that other ranks of their machine run.
//
// Ranks of one node share its memory (not GPUs, which have their own). Kernels are timed with all ranks at the same
// one, as replicas are: two ranks that update weights at once have half of the memory's rate each. The stages of a
// pipeline run different kernels, one updates while the other waits. So a kernel is slowed
// - as calibrated, by those ranks that run the same stage, and
// - by those that run other stages as far as both press on the memory: with e = together / alone - 1 of a kernel, two
//   that meet are slowed by the geometric mean of their e, which is e where they are the same. How much of what another
//   rank runs it meets is not known; it is taken to meet the mean of that rank's step.
// No kernel takes longer than timed with all ranks at it. docs/models/compute.md has the formula.
#pragma once

#include <vector>

#include "oracle/cost/price.h"

namespace sibyl {

// Do ranks of one memory run different stages, and is it known how they slow each other?
bool stages_share_memory(const Strategy& strategy, const Cluster& cluster);

// Lets the times of kernels in `priced`, of each stage of `plan`, be those beside the other stages, where these share
// its memory.
void share_memory(const Plan& plan, const Cluster& cluster, std::vector<PricedStage>& priced);

}  // namespace sibyl

// What kernels of a step find in the cache that kernels timed by themselves do not.
//
// Kernels are timed with nearly all that they touch in memory, and where a cache saves them time, once more with all of
// it still there (KernelEstimate::cached). In a step some of it is: what the cache still holds of what the step
// touches, in its order (memory/reuse.h), by how much else and how long ago that was, and by how often it comes again
// (ReuseCurve). So recomputed activations are there when their backward runs, and of a model smaller than the cache
// everything is, as far as others leave it there.
// docs/models/compute.md has the formula.
#pragma once

#include <vector>

#include "oracle/cost/price.h"

namespace sibyl {

// Is it known how much faster kernels are out of the cache, and what it holds?
bool knows_caches(const Cluster& cluster);

// Lets the times of kernels in `priced`, of each stage of `plan`, be those of a step.
void find_cached(const Plan& plan, const Cluster& cluster, std::vector<PricedStage>& priced);

}  // namespace sibyl

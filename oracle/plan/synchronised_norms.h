// Batch-norm over the samples of all replicas, and over all of a split image, as over one batch.
//
// Each batch-norm becomes statistics of the rank's own samples, their mean over replicas, and normalising by that. Backward
// the gradients of the statistics are summed over replicas likewise. What else shares the samples (an image's axes)
// follows from the rules of the two operations.
#pragma once

#include "oracle/plan/plan.h"

namespace sibyl {

Stage with_synchronised_norms(const Stage& stage, const Strategy& strategy);

}  // namespace sibyl

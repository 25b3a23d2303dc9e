// Norms over tensors that ranks hold parts of: for clipping gradients, and for optimizers that scale each tensor.
#pragma once

#include "oracle/plan/plan.h"

namespace sibyl {

// LAMB and LARS scale the update of each tensor by its norms.
bool takes_norms(OptimizerKind kind);

// After it is known who holds which part of what (plan/zero.h).
void add_norms(Stage& stage, const Strategy& strategy);
// Of a pipeline, when all stages have theirs: the norm that gradients are clipped by is that over all stages.
void join_clips(Plan& plan);

// Elements of the message that carries the norms of every tensor: two for each. 0 where none is sent.
std::int64_t norm_elements(const Stage& stage);

}  // namespace sibyl

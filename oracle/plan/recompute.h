// Which steps of a program run again before their backward, so that their results need not be kept.
//
// full: every block (plan/blocks.h); of each only what it reads is kept (Chen et al., 2016).
// selective: attention's core: the scores, their softmax and dropout, and the product with the values. It keeps much
// and computes little (Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022,
// section 5). As one operation, or as the products and what lies between them.
#pragma once

#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

std::vector<Segment> recomputed_segments(const Stage& stage, Recompute recompute);

// By step: whether it lies in one of the stage's segments.
std::vector<bool> recomputed_steps(const Stage& stage);

// What a segment reads and does not make: activations and inputs, each once, in order of use. Kept until its backward.
std::vector<LocalTensorId> inputs_of(const Stage& stage, const Segment& segment);
// What it makes and steps after it, or the next stage, read.
std::vector<LocalTensorId> outputs_of(const Stage& stage, const Segment& segment);

}  // namespace sibyl

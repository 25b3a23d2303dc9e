// Which steps of a program run again before their backward, so that their results need not be kept.
//
// full: blocks (plan/blocks.h); of each only what it reads is kept (Chen et al., 2016). Every block; or of each K in a row
// the last (torchtitan's selective layers); or K together, of which what the first reads is kept (Megatron-LM's uniform
// method). Stages of a pipeline count for themselves.
// selective: attention's core: the scores, their softmax and dropout, and the product with the values. It keeps much
// and computes little (Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022,
// section 5). As one operation, or as the products and what lies between them.
// operations: those of the kinds named; ones in a row together.
#pragma once

#include <compare>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

// Of a stage's blocks, with --recompute full.
struct BlocksAgain {
  int every = 1;     // of so many in a row the last one
  int together = 1;  // so many in a row as if they were one
  auto operator<=>(const BlocksAgain&) const = default;
};
std::vector<Segment> blocks_again(const std::vector<Segment>& blocks, const BlocksAgain& which);

// `like`: as of Blocks.
std::vector<Segment> recomputed_segments(const Stage& stage, const Strategy& strategy,
                                         const std::vector<std::size_t>& like = {});

// By step: whether it lies in one of these; of the stage's.
std::vector<bool> steps_inside(const std::vector<Segment>& segments, std::size_t steps);
std::vector<bool> recomputed_steps(const Stage& stage);

// What a segment reads and does not make: activations and inputs, each once, in order of use. Kept until its backward.
std::vector<LocalTensorId> inputs_of(const Stage& stage, const Segment& segment);
// What it makes and steps after it, or the next stage, read.
std::vector<LocalTensorId> outputs_of(const Stage& stage, const Segment& segment);

}  // namespace sibyl

// What Megatron-LM, whose models are those held in two bytes, does not keep between the passes.
#pragma once

#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

// By tensor: of what sequence parallelism gathers before a linear layer a rank keeps its own part, and gathers again
// beside the first product of backward (Korthikanti et al., 2022, section 4.2.2).
std::vector<bool> regathered_tensors(const Stage& stage, const Strategy& strategy);

// A stage's result is freed once it is sent: the next stage has it, and backward begins with its gradient alone
// (deallocate_output_tensor of Megatron-LM's schedules.py; Korthikanti et al., appendix B).
bool frees_sent(const Strategy& strategy);

// Gradients are summed where they are sent from: they lie in their bucket, which is there before the step begins and is
// no second copy of them (the contiguous buffers of Megatron-LM's distributed.py; of a parameter its distributed
// optimizer holds two bytes of weight, two of gradient and the rank's share of all else). Buffers that buckets take in
// turn are apart (ZeRO 2, 3).
bool gradients_in_buckets(const Strategy& strategy);

}  // namespace sibyl

// Tensors that sequence parallelism gathers once more for backward instead of keeping them.
#pragma once

#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

// By tensor. Megatron-LM's way, whose models are those held in two bytes: of what is gathered before a linear layer a rank keeps its own
// part, and gathers again beside the first product of backward (Korthikanti et al., 2022, section 4.2.2).
std::vector<bool> regathered_tensors(const Stage& stage, const Strategy& strategy);

}  // namespace sibyl

// The copies by which an exchange between ranks puts in order what it sends and receives.
#pragma once

#include <optional>

#include "models/operations/operations.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// Of one transfer from `in` to `out`, as one kernel; none where everything is sent from where it lies to where it
// stays. Processors: as the trainer does it (trainer/exchange.cpp, operations/packing.h). GPUs: a copy of the larger
// side, as Megatron-LM's concatenation of what was gathered; what NCCL copies of a rank's own part is in its time.
std::optional<Signature> packing_of(const Transfer& transfer, const LocalTensor& in, const LocalTensor& out,
                                    Backend backend);

}  // namespace sibyl

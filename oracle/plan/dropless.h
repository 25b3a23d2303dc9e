// Experts without slots (MegaBlocks, Megatron-LM's grouped GEMM): what has no token is not sent.
//
// A plan's slots are those of the rank whose experts the most tokens come to: the capacity factor says how much more
// than its share that is, and this is what it computes and holds. Of its own samples every rank sends the tokens alone,
// so the all-to-alls to experts and back are uneven (netmodel/collective/imbalance.h): they move what full slots of an
// even share would, of which that rank gets as many times its part.
#pragma once

#include "oracle/plan/plan.h"

namespace sibyl {

void send_filled_slots(Stage& program);

}  // namespace sibyl

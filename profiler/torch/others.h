// What runs between two runs of a kernel in a training step: other kernels. They take its code out of the processor's
// instruction caches, branch predictors and address translations, where a loop over one kernel would keep it.
#pragma once

namespace sibyl {

// One step of a tiny network of some twenty kinds of operations, forward and backward: half a millisecond that is all code
// and no data. It leaves random numbers as they were.
void run_others();

}  // namespace sibyl

// What a kernel takes as the strategy's libraries run it: with what is done around it, images transposed for tensor
// cores where they lie channels first, or for batch-norms where they lie channels last, and channels padded to what
// tensor cores load at once (plan/image_kernels.h); attention by the kernels of one library or another
// (profiler/attention_library.h).
#pragma once

#include "oracle/strategy.h"
#include "profiler/kernel_table.h"

namespace sibyl {

// A kernel that was measured as it is needs no padding: its sample holds what there was of it. A convolution in tf32
// whose images would be transposed runs in f32 where that is quicker: it needs no transposition.
KernelEstimate estimate(const KernelTable& kernels, const KernelKey& key, const Strategy& strategy);

}  // namespace sibyl

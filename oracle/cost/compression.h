// The kernels that turn a bucket of gradients into what travels, and back (plan/compression.h). Their order is that of
// a bucket: `before` on its way out, once it is complete; `after` when its messages are there. Those that stand between
// two messages of one bucket, where sums of levels become levels, are counted with `after`.
#pragma once

#include <vector>

#include "oracle/plan/plan.h"
#include "profiler/kernel_key.h"

namespace sibyl {

struct CompressionKernels {
  std::vector<KernelKey> before, after;
};
// Of the first rank, whose part is the largest.
CompressionKernels compression_kernels(const GradientSync& sync, const Bucket& bucket);

}  // namespace sibyl

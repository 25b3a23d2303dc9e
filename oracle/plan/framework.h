// What one framework does in a step that others do not.
//
// pytorch-ddp: PyTorch's DistributedDataParallel (Li et al., VLDB 2020), with its defaults. Buckets and overlap are those of
// plan/buckets.h, which are named after it. Beside them, before each forward, the first replica's buffers are broadcast to
// all others: one message of all floating ones, and one of all counters, eight bytes for each batch-norm's batches. Of a
// model's buffers an ONNX file shows batch-norm's statistics; masks and tables that a module registers are not counted.
#pragma once

#include "oracle/plan/plan.h"

namespace sibyl {

// Is there anything in the strategy that the framework does not offer?
Result<void> check_framework(const Strategy& strategy);

// The messages that carry buffers, in bytes, in their order.
std::vector<std::int64_t> buffer_broadcasts(const Stage& stage, const Strategy& strategy);

}  // namespace sibyl

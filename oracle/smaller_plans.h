// Other ways to train the same model in the same step that take less memory: results computed again for backward, state
// that replicas share (ZeRO), replicas split into pipelines or over tensor ranks, smaller micro-batches; and all of
// them together.
//
// Batch, precision, optimizer and number of devices stay. The least change comes first: one thing that differs before
// two, and of as many the order is that of the list above, each from its mildest degree on. Not all of them can be
// planned for every model: planning refuses those that cannot.
#pragma once

#include <vector>

#include "oracle/strategy.h"

namespace sibyl {

// `split`: replicas may be split otherwise, too. `strategy` itself is not among them.
std::vector<Strategy> smaller_plans(const Strategy& strategy, bool split);

}  // namespace sibyl

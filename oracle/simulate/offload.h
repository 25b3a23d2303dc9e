// The updates of a stage whose optimizer state lies outside the device: blocks updated in turn, and copies beside them.
//
// Two streams (simulate/streams.h), of kernels and of copies, which slow each other where the processor runs both
// (copies_slowdown()).
#pragma once

#include <span>
#include <vector>

#include "oracle/cost/price.h"
#include "oracle/plan/plan.h"
#include "oracle/simulate/step.h"

namespace sibyl {

struct OffloadedUpdates {
  std::vector<Span> updates;  // by block
  std::vector<Span> copies;   // by Stage::copies
  Seconds end;                // from the first copy until the last
  Seconds waited;             // of which: nothing was updated
};

// From when the first update may begin. `updates`: of each block; `taken`: by each of the copies. Launches are not
// waited for: the tail counts them (TailTimes::host).
OffloadedUpdates updated_in_blocks(std::span<const Seconds> updates, std::span<const OffloadCopy> copies,
                                   std::span<const Seconds> taken, double beside_copies);
OffloadedUpdates offloaded_updates(const Stage& stage, const PricedStage& priced, const Relief& relief);

}  // namespace sibyl

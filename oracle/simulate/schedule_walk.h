// What a pipeline's step takes and consists of, from what each turn of each stage takes by itself.
#pragma once

#include <vector>

#include "base/cancelled.h"
#include "oracle/plan/pipeline/schedules.h"
#include "oracle/simulate/pipeline.h"
#include "oracle/simulate/stage_times.h"

namespace sibyl {

// Cancelled: of the turns until then.
SimulatedPipeline walk_schedule(const Turns& turns, const std::vector<StageTimes>& stages, int micro_batches,
                                const Cancelled& cancelled = {});

}  // namespace sibyl

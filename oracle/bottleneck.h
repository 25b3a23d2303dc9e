// What holds a step back: of the resources a step uses, the one whose doubling shrinks the step most.
#pragma once

#include "base/cancelled.h"
#include "calibration/cluster.h"
#include "oracle/cost/price.h"
#include "oracle/prediction.h"
#include "oracle/simulate/pipeline.h"
#include "oracle/simulate/step.h"

namespace sibyl {

// Of a pipeline, also: stages that take longer than others, and idling where nothing has arrived yet. Cancelled: none
// that means anything.
Bottleneck find_bottleneck(const Plan& plan, const std::vector<PricedStage>& priced, Slowdown slowdown,
                           const SimulatedPipeline& times, const PipelineWaits& waits, const Cancelled& cancelled = {});
Bottleneck find_bottleneck(const Stage& stage, const PricedStage& priced, Slowdown slowdown, const SimulatedStep& times,
                           const Cancelled& cancelled = {});

}  // namespace sibyl

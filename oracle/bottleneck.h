// What holds a step back: of the resources a step uses, the one whose doubling shrinks the step most.
#pragma once

#include "calibration/cluster.h"
#include "oracle/cost/price.h"
#include "oracle/prediction.h"
#include "oracle/simulate/step.h"

namespace sibyl {

Bottleneck find_bottleneck(const Stage& stage, const PricedStage& priced, Slowdown slowdown, const SimulatedStep& times);

}  // namespace sibyl

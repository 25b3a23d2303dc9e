// What would relieve a bottleneck: other settings of this plan, or another machine, in words; no number. Only what is
// not done yet, and what this model and this device can do, is named.
#pragma once

#include <string>
#include <vector>

#include "oracle/limits.h"

namespace sibyl {

// `limits`: those of the same plan. A bottleneck that is a limit, too, is relieved by what relieves that. In the manner
// of Limit::relief: parts with "; " between them. Empty where the bottleneck's name is none of BottleneckKind's.
std::string remedies(const Bottleneck& bottleneck, const PricedPlan& plan, const std::vector<Limit>& limits);

}  // namespace sibyl

// What a strategy asks for in vain: options that change nothing of this plan on this device. They are no errors, for a
// list of strategies may carry them along; but who reads a prediction should not think that they did something.
#pragma once

#include <string>
#include <vector>

#include "models/graph.h"
#include "oracle/plan/plan.h"
#include "profiler/device.h"

namespace sibyl {

// "--zero 1: there are no replicas that could share state", one sentence each; none where everything counts.
std::vector<std::string> without_effect(const Graph& graph, const Plan& plan, const Device& device);

}  // namespace sibyl

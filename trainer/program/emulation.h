// The times of an emulated device: what the oracle would say each part of the step takes, from a calibration.
#pragma once

#include <string>

#include "base/result.h"
#include "oracle/plan/plan.h"
#include "trainer/emulated_times.h"

namespace sibyl::trainer {

// `calibration`: a calibration file, a cluster file, or a shipped cluster. Only its device counts: the network is the
// real one.
Result<EmulatedTimes> emulated_times(const Plan& plan, const std::string& calibration);

}  // namespace sibyl::trainer

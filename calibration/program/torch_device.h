// What the device that libtorch computes on can do at most.
#pragma once

#include "base/result.h"
#include "calibration/program/ranks.h"
#include "calibration/program/session.h"
#include "profiler/torch/timing.h"

namespace sibyl {

// The options with the ranks' agreement filled in: all ranks of the run time the same kernel at the same time, because
// in training they share memory bandwidth and cache.
TimingOptions timed_together(TimingOptions options, const Ranks& ranks);

// Peak, bandwidth and memory of the device, as one rank's share while all are busy; of a GPU the cache, too, and what
// the shipped calibration of its name tells. Kept if the session has them.
Result<void> measure_device(const Ranks& ranks, Session& session, const TimingOptions& options);

// An Error once this rank's GPU has failed, and times nothing more in this process.
Result<void> gpu_is_usable();

}  // namespace sibyl

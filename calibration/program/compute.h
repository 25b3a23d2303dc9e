// Times kernels on all ranks at once and puts them into the session; and what the processor can do at most.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "calibration/program/ranks.h"
#include "calibration/program/session.h"
#include "profiler/torch/timing.h"

namespace sibyl {

// The options with the ranks' agreement filled in: all ranks of the run time the same kernel at the same time, because
// in training they share memory bandwidth and cache.
TimingOptions timed_together(TimingOptions options, const Ranks& ranks);

// Peak, bandwidth, memory and cache of the device, as one rank's share while all are busy. Kept if the session has
// them.
Result<void> measure_device(const Ranks& ranks, Session& session, const TimingOptions& options);

// `keys` is rank 0's. Each is timed once, but those of which the session has `samples` are skipped. Stops early, without error, when `limit` is spent. A key that
// cannot be timed does not stop the others: it is the Error at the end. Code interrupted after Ctrl-C.
Result<void> measure_kernels(const Ranks& ranks, Session& session, const std::vector<KernelKey>& keys,
                             const TimingOptions& options, int samples, std::optional<Seconds> limit);

}  // namespace sibyl

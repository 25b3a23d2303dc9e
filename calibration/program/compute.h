// Times kernels on all ranks at once; those that ranks may slow for each other on one alone, too, and those that a
// cache may save time once more out of it; and puts them into the session, whatever times them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "calibration/program/ranks.h"
#include "calibration/program/session.h"
#include "calibration/repetition.h"

namespace sibyl {

// Times one kernel on this rank; called by all ranks together, and fails on all of them or on none.
using TimeKernel = std::function<Result<KernelSample>(const KernelKey&)>;

struct KernelTimers {
  TimeKernel together;
  // On this rank, while the others wait; empty where ranks have nothing in common, or there is one.
  TimeKernel alone = {};
  TimeKernel cached = {};  // as together, with all that the kernel touches in the cache; empty where none is told of
};

// `keys` is rank 0's. Each is timed once, but those that need not be `repeated` are skipped. Stops early,
// without error, when `limit` is spent. A key that cannot be timed does not stop the others: it is the Error at the
// end. Code interrupted after Ctrl-C.
Result<void> measure_kernels(const Ranks& ranks, Session& session, const std::vector<KernelKey>& keys,
                             const KernelTimers& timers, const Repetition& repeated, std::optional<Seconds> limit);

}  // namespace sibyl

// Times kernels on all ranks at once; those that ranks may slow for each other on one alone, too, and those that a
// cache may save time once more out of it; and puts them into the session, whatever times them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "calibration/program/ranks.h"
#include "calibration/program/session.h"
#include "calibration/repetition.h"

namespace sibyl {

// Times kernels in turn on this rank; called by all ranks together, and one fails on all of them or on none.
using TimeKernels = std::function<std::vector<Result<KernelSample>>(std::span<const KernelKey>)>;

struct KernelTimers {
  TimeKernels together;
  // On this rank, while the others wait; empty where ranks have nothing in common, or there is one.
  TimeKernels alone = {};
  TimeKernels cached = {};  // as together, with all that the kernel touches in the cache; empty where none is told of
  Bytes lap = {};           // kernels take turns until they touch so much together; 0: each by itself
  Bytes most_memory = {};   // but not more
  // Asked on all ranks after a kernel that could not be timed: an Error where this process can time no other, either,
  // as of a GPU that has failed. May be empty.
  std::function<Result<void>()> usable = {};
};

// `keys` is rank 0's. Each is timed once, but those that need not be `repeated` are skipped. Stops early,
// without error, when `limit` is spent. A key that cannot be timed does not stop the others: it is the Error at the
// end. One that nothing can be timed after does: the session keeps its name, and no later run begins it.
// Code interrupted after Ctrl-C.
Result<void> measure_kernels(const Ranks& ranks, Session& session, const std::vector<KernelKey>& keys,
                             const KernelTimers& timers, const Repetition& repeated, std::optional<Seconds> limit);

}  // namespace sibyl

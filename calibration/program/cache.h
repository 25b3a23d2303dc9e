// The cache that kernels are timed outside of.
#pragma once

#include "base/result.h"
#include "calibration/program/ranks.h"
#include "calibration/program/session.h"

namespace sibyl {

// What is asked for (0: nothing); else what the session has; else what a core is found to have (profiler/cache.h) while
// all ranks read at once, each with `threads` threads, and then what it holds of what a step touches
// and for how long (profiler/reuse_curve.h). The session keeps it, and the sweeps. By all ranks, before anything is
// measured.
//
// An Error if another cache is asked for than the session's kernels were timed outside of: a table of both would be
// read as one machine's.
Result<Bytes> settle_cache(const Ranks& ranks, Session& session, Bytes asked, int threads);

}  // namespace sibyl

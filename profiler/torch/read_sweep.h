// How fast this process reads working sets of several sizes, again and again: what cache.h finds the cache by.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "profiler/cache.h"

namespace sibyl {

// For each size in turn `together` is called, which returns when all processes that share the machine have called it;
// then `threads` threads read their parts of the working set. The best of three such rounds: one to two seconds where
// the largest working set is a gigabyte. The largest first: a cache holds the end of one and the next begins at its
// begin. `sizes` as working_sets() gives them: more than half of the largest is taken to fit in no cache.
std::vector<ReadSample> read_sweep(std::span<const Bytes> sizes, int threads, const std::function<void()>& together);

}  // namespace sibyl

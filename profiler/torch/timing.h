// The timing loop: how often pieces of work are timed, in which state of the caches, and when they have been timed
// enough. Knows neither torch nor MPI, so its rules can be tested with made-up times.
//
// They take turns, as a training step's kernels do: between two runs of one all others pass through the cache, with
// what libraries use in between; where they are too few, so does a buffer. Code passes, too: `others` stands for a
// step's.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace sibyl {

// What a rank wants after a lap: to end, go on, end although others would go on, or go on whatever others want, as not
// all have run often enough. In the end, of each work, whether it failed. The greatest of all ranks' votes holds for
// all.
enum class Vote { done = 0, more = 1, hurry = 2, least = 3, failed = 4 };

struct TimingOptions {
  Seconds budget{0.1};      // of each: stop once timing them has taken this long…
  double precision = 0.01;  // …or the 95 % confidence intervals of their medians are within ± this share of them
  int least_runs = 5;       // but not with fewer timings of any
  int most_warm_ups = 8;    // laps
  Bytes cache;  // last-level cache, which arrays that measure the memory are larger than; 0 asks the machine
  Bytes lap;    // touched between two runs of one, at least; 0: each finds what it has touched where it left it
  Bytes most_memory{2e9};  // of this process: operands, and the buffer
  bool others = true;      // other kernels run before each run (others.h); none on a GPU
  // Combines the votes of the ranks that time together; returns when all have called it, so it is their barrier too.
  // Empty: this process times alone.
  std::function<Vote(Vote)> agree;
  std::function<bool()> in_a_hurry;  // then the least runs are enough, on all ranks; may be empty
  // How often this process has page-faulted so far; page_faults() unless given.
  std::function<std::int64_t()> faults;
};

// Of this machine, as the kernel describes it (one cache, not the sum over sockets); 32 MiB where nothing says.
Bytes last_level_cache();

// Whether the 95 % confidence interval of the median (order statistics; no distribution assumed) is that narrow.
bool median_is_known(std::span<const double> values, double precision);

struct TimedWork {
  std::function<void()> begin_lap;    // may be empty
  std::function<double()> measure;    // warms what is warm in a step, runs, and returns the seconds of the run alone
  std::function<void()> others = {};  // before each; may be empty
  Bytes touches = {};                 // from one lap to the next
  Bytes holds = {};                   // between them: of the memory of this process
};

double now();  // seconds on a clock that never goes back
// Minor faults of this process so far.
std::int64_t page_faults();

// Laps over all works, always in the same, shuffled order: some to warm up, until none page-faults any more; then until
// all are known, or out of budget. A run that page-faults is not one of a steady step, where memory lies where the step
// before left it: it counts only where nearly all do. An exception on any rank is an Error of that work on all, and the
// others go on.
std::vector<Result<std::vector<double>>> time_laps(std::span<const TimedWork> works, const TimingOptions& options);
// One by itself.
Result<std::vector<double>> time_work(const TimedWork& work, const TimingOptions& options);

}  // namespace sibyl

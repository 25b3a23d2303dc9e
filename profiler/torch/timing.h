// The timing loop: how often a piece of work is timed, in which state of the caches, and when it has been timed enough.
// Knows neither torch nor MPI, so its rules can be tested with made-up times.
//
// Work is timed in laps over `copies` copies of its operands. A lap touches more memory than twice the last-level cache
// (what the copies lack, `padding` makes up before each run), so every copy is cold again when its turn comes: as in a
// training step, where the whole model passes through the cache between two runs of one kernel. Its code passes, too:
// `others` stands for that.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace sibyl {

// What a rank wants after a lap; the greatest of all ranks' votes holds for all.
enum class Vote { done = 0, more = 1, failed = 2 };

struct TimingOptions {
  Seconds budget{0.4};      // stop once a kernel's timings have taken this long…
  double precision = 0.01;  // …or the 95 % confidence interval of their median is within ± this share of it
  int least_runs = 5;       // but not with fewer timings
  int most_warm_ups = 8;    // laps
  Bytes cache;              // last-level cache to defeat; 0 asks the machine
  bool cached = false;      // it is not: what a run has touched lies where it left it when the next one comes
  Bytes most_memory{2e9};   // all copies together stay below this, if one copy does
  int most_copies = 16;
  bool others = true;  // other kernels run before each run (others.h); none on a GPU
  // Combines the votes of the ranks that time together; returns when all have called it, so it is their barrier too.
  // Empty: this process times alone.
  std::function<Vote(Vote)> agree;
  // How often this process has page-faulted so far; page_faults() unless given.
  std::function<std::int64_t()> faults;
};

// How copies and padding share the work of defeating the cache.
struct Rotation {
  int copies = 1;
  Bytes padding;  // touched before each run
  Bytes lap;      // what one lap touches: copies and padding
};
Rotation plan_rotation(Bytes one_copy, const TimingOptions& options);

// Of this machine, as the kernel describes it (one cache, not the sum over sockets); 32 MiB where nothing says.
Bytes last_level_cache();

// Whether the 95 % confidence interval of the median (order statistics; no distribution assumed) is that narrow.
bool median_is_known(std::span<const double> values, double precision);

struct TimedWork {
  std::function<void()> begin_lap;     // may be empty
  std::function<double(int)> measure;  // prepares copy i, runs it, and returns the seconds of the run alone
  std::function<void()> others = {};   // before each, after padding; may be empty
};

double now();  // seconds on a clock that never goes back
// Minor faults of this process so far.
std::int64_t page_faults();

// Laps to warm up, until one page-faults no more; then laps until known or out of budget. A run that page-faults is not
// one of a steady step, where memory lies where the step before left it: it counts only where nearly all do. An
// exception of `measure` on any rank is an Error on all.
Result<std::vector<double>> time_laps(const TimedWork& work, const Rotation& rotation, const TimingOptions& options);

}  // namespace sibyl

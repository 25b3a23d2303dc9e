// Timing something that several ranks do together.
#pragma once

#include <functional>
#include <vector>

#include "base/units.h"
#include "comm/communicator.h"

namespace sibyl::probe {

struct Timing {
  double seconds = 0.0;  // median
  double spread = 0.0;   // relative
};

double now();
Timing summary(const std::vector<double>& values);
double slowest(const Communicator& world, double value);  // the largest over ranks, on every rank

// Batches of `once`, as many as fit into `allowance` (at least 3, at most `most`), each long enough that the skew of
// starting does not count. Every rank of `world` must call it; `once` may do nothing on some.
Timing timed(Communicator& world, const std::function<void()>& once, double allowance, int most = 15);

// What to add to this rank's clock to have rank 0's: each rank asks one that knows, the shortest of some questions
// there and back tells, log2 p rounds. Good to some microseconds, for as long as clocks do not drift apart.
double offset_to_first(Communicator& world, const std::function<double()>& clock = now);

// What an exchange of groups took, all at once, from when each rank began until it was done by one clock: of a group
// from its last beginning (before, some only wait) to its last end, for a rank may be done while others' data are still
// on the wire; of several groups the slowest counts. Negative groups look on.
struct Interval {
  double begin = 0.0, end = 0.0;
};
double time_of_groups(const std::vector<double>& groups, const std::vector<Interval>& ranks);

// Runs of what takes so long, seconds, until it is known: one that makes connections, and 5; of what takes more than
// half a second, which shakes less, 3.
int least_runs(double seconds);

// Within 2 %: what a median of so many is off in the mean (its standard error) by what they differ by.
bool median_is_known(const std::vector<double>& values);

// One at a time, as in a training step: all ranks agree on a time to begin, `once` is timed (time_of_groups), and
// `between` leaves nothing of it in the caches. `group`: any number that this rank shares with the others of
// its group; negative where it looks on. As many runs as fit into `allowance`: at least least_runs() with the one that
// is not counted, at most `most`; and until median_is_known() as many as fit into a quarter of it, at most 8 `most`.
// After each run `stop` is asked, and true of any rank ends the series with what there is: long exchanges take minutes.
Timing timed_apart(Communicator& world, int group, const std::function<void()>& between,
                   const std::function<void()>& once, double allowance, int most,
                   const std::function<double()>& clock = now, const std::function<bool()>& stop = {});

bool any_stops(const Communicator& world, const std::function<bool()>& stop);  // called by all ranks

// What each rank spent on an exchange, in the mean of its group; of several groups the slowest counts. Negative groups
// look on.
double mean_of_groups(const std::vector<double>& groups, const std::vector<double>& seconds);

// CollectiveSample::in_turn of `once`, which takes about `seconds`, by `runs` runs: one exchange that all ranks begin
// together, then some in a row with a rest of `seconds` before each. `rest` lets that much time pass on this rank.
double share_in_turn(Communicator& world, int group, const std::function<void(Seconds)>& rest,
                     const std::function<void()>& once, double seconds, int runs,
                     const std::function<double()>& clock = now);

}  // namespace sibyl::probe

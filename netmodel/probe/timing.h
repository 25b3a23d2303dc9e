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

// What an exchange of groups took, all at once, by rank: of a group says its quickest rank, which began last, for none
// is done before all have begun; of several groups the slowest counts. Negative groups look on.
double time_of_groups(const std::vector<double>& groups, const std::vector<double>& took);

// One at a time, as in a training step: `before` leaves nothing of the last run in the caches, all ranks meet, then
// `once` is timed (time_of_groups). `group`: any number that this rank shares with the others of its group; negative
// where it looks on. As many runs as fit into `allowance`: at least 5, at most `most`.
Timing timed_apart(Communicator& world, int group, const std::function<void()>& before,
                   const std::function<void()>& once, double allowance, int most);

}  // namespace sibyl::probe

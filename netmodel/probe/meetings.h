// How ranks that compute on their own meet: in a step with exchanges between operations each rank computes for some
// milliseconds, waits for the others, exchanges, and computes again, hundreds of times. Such a step takes the sum of
// means, and what delays one rank now and then (its processor taken away for a time slice, a slow spell of its memory)
// is in no median of kernels or messages timed by themselves.
#pragma once

#include <functional>
#include <vector>

#include "base/units.h"
#include "comm/communicator.h"

namespace sibyl {

struct MeetingMeasurement {
  // All ranks compute for about `computing`; the last of them is through with it, in the mean, `late` after the mean of
  // the ranks.
  struct Window {
    Seconds computing, late;
  };
  std::vector<Window> windows;  // the shortest first, each twice as long as the one before
  Seconds longer;               // an exchange between computing, in the mean, than the same in the median
};

// One rank's clock readings of a series: when it began each exchange and was done with it.
struct MeetingTimes {
  std::vector<double> begin, end;
};

// What the readings of all ranks say, by their own clocks, which need not agree. Between two meetings rank r computes
// x_r = begin - the end before. A window of n of them is late by max_r - mean_r of the sums of x_r, in the mean over the
// windows of a series that do not overlap, of which there are at least 8. What ranks spend in exchanges, in their mean,
// is the message and waiting; the message alone is the median of the shortest that any rank spends, the last one's.
// What is left is `longer`.
MeetingMeasurement meetings_of(const std::vector<MeetingTimes>& ranks);

// Called by all ranks. As many meetings as fit into the budget, 64 to 1,024; the same on every rank.
MeetingMeasurement probe_meetings(Communicator& world, const std::function<void()>& compute,
                                  const std::function<void()>& exchange, Seconds budget = Seconds{4.0});

}  // namespace sibyl

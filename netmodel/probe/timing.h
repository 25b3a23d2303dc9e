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

}  // namespace sibyl::probe

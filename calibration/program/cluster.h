// What lies between the ranks: messages, collectives, and what they cost computing beside them.
#pragma once

#include <optional>

#include "base/result.h"
#include "calibration/program/ranks.h"
#include "calibration/program/session.h"

namespace sibyl {

struct NetworkRequest {
  Seconds budget{120.0};
  // Of each message and collective: those that the file has so often are not timed again. Unless said, three, at three
  // moments: what is timed in a row meets one bad spell of a machine or a network together, and of three samples the
  // median counts. Half of the budget is the first moment's, which has the longest ones, too, as far as they fit.
  std::optional<int> samples;
  // Between messages: as emulated ranks do, which do not compute. Unless said, where ranks share processors: who is
  // done with a message first and computes would be in the way of those who are not, as no other machine's rank is.
  std::optional<bool> ranks_sleep;
};

// Samples stand in the file as soon as each is taken, also of a run that is interrupted, which ends soon. Nothing with
// one rank.
Result<void> measure_network(const Ranks& ranks, Session& session, const NetworkRequest& request);
Result<void> measure_overlap(const Ranks& ranks, Session& session);

}  // namespace sibyl

// What lies between the ranks: messages, collectives, and what they cost computing beside them.
#pragma once

#include "base/result.h"
#include "calibration/program/ranks.h"
#include "calibration/program/session.h"

namespace sibyl {

struct NetworkRequest {
  Seconds budget{120.0};
  int samples = 1;           // of each message and collective: those that the file has so often are not timed again
  bool ranks_sleep = false;  // between messages, as emulated ranks do, which do not compute
};

// Samples stand in the file as soon as each is taken, also of a run that is interrupted, which ends soon. Nothing with
// one rank.
Result<void> measure_network(const Ranks& ranks, Session& session, const NetworkRequest& request);
Result<void> measure_overlap(const Ranks& ranks, Session& session);

}  // namespace sibyl

// What lies between the ranks: messages, collectives, and what they cost computing beside them.
#pragma once

#include "base/result.h"
#include "calibration/program/ranks.h"
#include "calibration/program/session.h"

namespace sibyl {

// Samples stand in the file as soon as each is taken; those that do already are not taken again. Nothing with one rank.
Result<void> measure_network(const Ranks& ranks, Session& session, Seconds budget);
Result<void> measure_overlap(const Ranks& ranks, Session& session);

}  // namespace sibyl

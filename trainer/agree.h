// One rank's failure is everyone's: before ranks depend on each other, all learn whether all are well.
#pragma once

#include "base/result.h"
#include "comm/communicator.h"

namespace sibyl::trainer {

// Called by every rank. Where any failed, all return an Error of the first such rank's code; on every other rank its
// message is empty, so that it is said once.
Result<void> agree(const Communicator& communicator, const Result<void>& own);

}  // namespace sibyl::trainer

// Trains a model by a Plan, as one rank of it, and measures. Needs no torch header.
#pragma once

#include "base/result.h"
#include "comm/communicator.h"
#include "oracle/plan/plan.h"
#include "trainer/measurement.h"
#include "trainer/settings.h"

namespace sibyl::trainer {

// Every rank of the plan's mesh calls it alike, after aten::prepare_process. What cannot be run or read is an Error on
// every rank (see agree.h). What fails on one rank later, while others wait for it, is printed there and ends them all.
// The measurement is the same on all ranks, but for what rank 0 could not write.
Result<Measurement> train(const Graph& graph, const Plan& plan, const TrainSettings& settings,
                          Communicator& communicator);

}  // namespace sibyl::trainer

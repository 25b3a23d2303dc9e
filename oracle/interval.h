// How sure a prediction is.
//
// Errors of kernels of one family and one provenance are taken as fully correlated (an interpolation that is off is off
// for all its neighbours), errors of different families as independent; so are messages of one algorithm over the same
// links with one provenance, and others. On top comes the error of adding kernels up to a step, learnt from reference
// steps (calibration/composition.h). The step waits for its slowest rank: with steps of one rank spread by sigma, the expected maximum over p ranks is mean + sigma E_p.
#pragma once

#include "base/units.h"
#include "oracle/cost/price.h"
#include "oracle/prediction.h"
#include "oracle/simulate/step.h"
#include "oracle/step_error.h"

namespace sibyl {

// The interval's lower end, as a share of the time, where its half is `error` of that. A step takes some time, however
// little is known of it: beyond 1/2 the error is a factor, and the end goes on as it came there.
constexpr double lower_end(double error) { return error <= 0.5 ? 1 - error : 0.25 / error; }

// What the host's launches make the step off by: alike in all predictions for a device.
void add_host_error(StepError& error, Seconds size);

struct Uncertainty {
  StepError error;             // of the step time
  Seconds slowest_rank;        // expected excess of the slowest rank over the mean
  ProvenanceShares provenance;
};

Uncertainty uncertainty(const Stage& stage, const PricedStage& priced, const TimeBreakdown& times, int ranks);
// The same of a pipeline's coordinate, which has `stages` out of all, both parallel. What it idles through is as unsure as
// what it does: the others' work.
Uncertainty uncertainty(const Plan& plan, const std::vector<PricedStage>& priced, std::size_t coordinate,
                        const SimulatedStep& times);

}  // namespace sibyl

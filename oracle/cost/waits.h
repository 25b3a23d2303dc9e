// How long ranks wait for each other at an exchange in the middle of a pass.
//
// An exchange begins when the slowest of its group arrives. By how much that is later than the mean of ranks, and how
// much longer exchanges take there than by themselves, is measured (calibration/meetings.h): of p ranks E_p / E_q of
// what q ranks showed (E_p: oracle/expected_maximum.h).
// Where it was not, kernels tell. They take a little more or less each time they run, on each rank by itself: with
// kernels of time t_k and relative spread s_k since the group last met, arrivals are spread by sqrt(sum (t_k s_k)^2),
// and the last of p is expected E_p of that after the mean.
// What makes a whole step of a rank slow is not of this kind: it is the spread of steps, counted once
// (oracle/interval.h).
//
// What ranks compute between two exchanges is also what they can do while others of their group are not done with the
// first (CollectiveSample::in_turn). Before the first exchange of a pass lies another pass: enough.
#pragma once

#include <algorithm>
#include <vector>

#include "calibration/cluster.h"
#include "oracle/cost/kernel_prices.h"
#include "oracle/cost/kernels.h"
#include "oracle/plan/plan.h"

namespace sibyl {

struct ExchangeWait {
  Seconds forward, backward;  // with what the exchange itself takes longer for being in a step
  Seconds computing_forward = {}, computing_backward = {};  // by kernels, since the group last met
};

// Of a pass, seconds: nobody gets farther ahead of the last rank than there is something to compute.
inline double time_in_turn(double alone, double share, double computing) {
  return std::max(alone * share, alone - computing);
}

// By step; nothing but exchanges has any. `prices`: parallel to kernels.keys.
std::vector<ExchangeWait> exchange_waits(const Mesh& mesh, const Stage& stage, const StageKernels& kernels,
                                         const std::vector<PricedKernel>& prices, const Cluster& cluster);

}  // namespace sibyl

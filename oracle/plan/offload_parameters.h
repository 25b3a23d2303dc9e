// Parameters that lie in the memory of the host or in storage while no step reads them (ZeRO-Infinity: Rajbhandari et
// al., SC 2021, section 5.1): of those that replicas share (ZeRO 3), a rank's part of each unit.
//
// Before a unit is gathered, forward and backward, the rank's part of it comes to the device; the copy begins when the
// unit before the one before it is entered, one unit ahead of the gathering. Once it lies in what is gathered it is
// dropped: nothing has changed it. Updates bring it with its block (offload.h), and take it back.
#pragma once

#include "oracle/plan/plan.h"

namespace sibyl {

// What there is no way to do.
Result<void> check_parameters(const Strategy& strategy);

// Of what rank `place` of those who hold all parts has; rank 0's is the largest.
std::int64_t part_bytes(const Stage& stage, std::size_t sync, std::size_t bucket, int place = 0);
// How often a micro-batch brings a unit.
int times_gathered(const Stage& stage, const ParameterUnit& unit);

}  // namespace sibyl

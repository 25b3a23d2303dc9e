// How long the samples of a step take to come from storage.
//
// Priced only where the strategy says that samples come from storage: then every rank reads what its inputs hold (as
// the model takes them: f32 images, not the JPEG files they may have been) and the ranks of a node share its storage,
// which reads as calibration measured it. A loader prefetches, so that reading runs beside the step and is waited for
// only where it takes longer than the step. Decoding and augmentation are the host's and are not priced.
#pragma once

#include "base/result.h"
#include "calibration/cluster.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// One standard deviation, relative: files in a page cache, other users, small files, none of which calibration saw.
inline constexpr double reading_error = 0.20;

// Of one node; 0 where samples are in memory. Fails where the cluster's storage is not known.
Result<Seconds> reading_time(const Plan& plan, const Cluster& cluster);
// The same where a rank takes in so much for one micro-batch, at most.
Result<Seconds> reading_time(Bytes inputs, const Strategy& strategy, const Cluster& cluster);

// What a tensor holds of a micro-batch, if it is one that samples come in.
Bytes input_bytes(const LocalTensor& tensor);

}  // namespace sibyl

// How many samples of each kind a calibration holds, and what a run of a calibrator added to them.
#pragma once

#include <cstddef>
#include <string>

#include "calibration/calibration.h"

namespace sibyl {

struct SampleCounts {
  std::size_t kernels = 0, point_to_point = 0, pairs = 0, collectives = 0, overlap = 0, meetings = 0, io = 0, steps = 0;
  bool operator==(const SampleCounts&) const = default;
};

SampleCounts count_samples(const Calibration& calibration);

// What `sibyl calibrate --json` prints: the file, how long the run took, and of each kind of sample how many it added
// and how many there are now (docs/formats/calibration.md).
std::string summary_json(const std::string& file, const SampleCounts& before, const Calibration& now, Seconds elapsed);

}  // namespace sibyl

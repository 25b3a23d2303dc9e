// What measuring a GPU leaves open, as the shipped calibrations have it.
#pragma once

#include "calibration/calibration.h"

namespace sibyl {

// An operation of eager PyTorch on a GPU's host, as docs/models/step.md found it: one standard deviation is a factor of
// 1 + the error.
inline constexpr Seconds usual_dispatch{50e-6};
inline constexpr double usual_dispatch_error = 0.6;

// Of a GPU that was timed without a framework, whose operations take the host more than a launch. Kept if it is known.
void assume_dispatch(Device& device);

// From the shipped calibration of the device that it names, where there is one: architecture and multiprocessors,
// unless they are known, and whose kernels stand in for those that were not timed, the same device's first.
void add_shipped(Calibration& measured);

}  // namespace sibyl

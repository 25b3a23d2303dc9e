// How often a kernel is timed over the life of a calibration, one sample a run. A machine that others share has more
// than one speed, and keeps each for seconds to minutes: what one run measures is one of them, and only samples of
// many moments tell the mean that a step takes.
#pragma once

#include <optional>
#include <span>

namespace sibyl {

// Shorter kernels are many, and what they are off by averages out over a step.
inline constexpr double long_kernel = 2e-3;  // seconds

struct Repetition {
  int samples = 1;  // of every kernel
  // Of long kernels that have two samples more are taken, one in each run, until the standard error of their mean is
  // this share of it; not unless given.
  std::optional<double> known_to = {};

  // `times`: what samples of one kernel took, in seconds.
  [[nodiscard]] bool another(std::span<const double> times) const;
};

}  // namespace sibyl

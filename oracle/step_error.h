// What a step time may be off by, cause by cause, so that two predictions can be compared: what both are wrong about in
// the same way does not make one of them the faster.
//
// Kernels of one family and one provenance err alike (an interpolation that is off is off for all its neighbours), so do
// messages of one algorithm over the same links, and so does adding kernels up to a step; different causes err
// independently of each other.
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"

namespace sibyl {

struct StepError {
  struct Part {
    std::size_t cause = 0;
    Seconds size;  // one standard deviation
  };
  std::vector<Part> shared;  // by models of the same kernels, too; ascending in cause
  Seconds own;               // by no other prediction

  StepError& operator*=(double factor);
};

// Standard deviations either side of the mean.
inline constexpr double ninety_percent = 1.6449;

Seconds standard_deviation(const StepError& error);
// Of how much longer one of two steps takes than the other, on one device and of one model.
Seconds deviation_of_difference(const StepError& a, const StepError& b);

// Of a step's time: steps hardly repeat to that.
inline constexpr double negligible_time = 0.005;

// Can it be said which of two steps is the shorter one? They differ by more than the 90 % interval of their difference,
// and by more than negligible_time.
bool told_apart(Seconds a, const StepError& error_of_a, Seconds b, const StepError& error_of_b);

}  // namespace sibyl

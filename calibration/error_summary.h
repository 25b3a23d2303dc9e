// What many errors of predictions say together.
#pragma once

#include <cstddef>
#include <vector>

namespace sibyl {

struct Outcome {
  double ratio = 1.0;   // predicted / measured
  double stated = 0.0;  // relative error that the prediction claims
};

struct ErrorSummary {
  std::size_t count = 0;
  double median = 0.0, mean = 0.0, p90 = 0.0;  // of |predicted / measured - 1|
  double bias = 0.0;                           // median of predicted / measured, less 1
  double within_one = 0.0, within_two = 0.0;   // shares inside one and two of the standard deviations stated
};

// All 0 of none.
ErrorSummary summary_of(const std::vector<Outcome>& outcomes);

}  // namespace sibyl

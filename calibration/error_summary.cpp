#include "calibration/error_summary.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"

namespace sibyl {

ErrorSummary summary_of(const std::vector<Outcome>& outcomes) {
  ErrorSummary e;
  e.count = outcomes.size();
  if (outcomes.empty()) return e;
  std::vector<double> errors, ratios;
  const double n = static_cast<double>(outcomes.size());
  for (const Outcome& o : outcomes) {
    const double error = std::abs(o.ratio - 1);
    errors.push_back(error);
    ratios.push_back(o.ratio);
    e.mean += error / n;
    e.within_one += (error <= o.stated ? 1 : 0) / n;
    e.within_two += (error <= 2 * o.stated ? 1 : 0) / n;
  }
  std::sort(errors.begin(), errors.end());
  e.median = errors[static_cast<std::size_t>(0.5 * (n - 1))];
  e.p90 = errors[static_cast<std::size_t>(0.9 * (n - 1))];
  std::sort(ratios.begin(), ratios.end());
  e.bias = median(ratios) - 1;
  return e;
}

}  // namespace sibyl

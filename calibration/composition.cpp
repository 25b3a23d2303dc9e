#include "calibration/composition.h"

#include <cmath>

#include "base/statistics.h"

namespace sibyl {

Composition composition_of(const std::vector<StepSample>& steps) {
  Composition result;
  if (steps.size() < 3) return result;
  std::vector<double> ratios, spreads;
  for (const StepSample& step : steps) {
    ratios.push_back(step.measured / step.predicted);
    spreads.push_back(step.spread);
  }
  result.measured = true;
  result.factor = median(ratios);
  result.spread = median(spreads);
  double squares = 0;
  for (const double ratio : ratios) squares += std::pow(ratio / result.factor - 1, 2);
  const double n = static_cast<double>(ratios.size());
  result.relative_error = std::sqrt(squares / (n - 1) * (1 + 1 / n));
  return result;
}

}  // namespace sibyl

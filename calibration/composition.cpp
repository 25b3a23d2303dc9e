#include "calibration/composition.h"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numbers>

#include "base/statistics.h"

namespace sibyl {
namespace {

// A deviation known from n samples alone is itself uncertain: the 90 % interval of the next sample is Student's. This is
// the normal deviation with the same interval.
double normal_equivalent(double deviation, std::size_t n) {
  const boost::math::students_t student(static_cast<double>(n - 1));
  return deviation * quantile(student, 0.95) / quantile(boost::math::normal(), 0.95);
}

}  // namespace

Composition composition_of(const std::vector<StepSample>& steps, double between_devices) {
  Composition result;
  result.spread = between_devices;
  if (steps.size() < 3) return result;
  std::vector<double> ratios, spreads;
  for (const StepSample& step : steps) {
    ratios.push_back(step.measured / step.predicted);
    spreads.push_back(step.spread);
  }
  const double expected = result.relative_error, middle = median(ratios);
  double squares = 0;
  for (const double ratio : ratios) squares += std::pow(ratio / middle - 1, 2);
  const double n = static_cast<double>(ratios.size()), variance = squares / (n - 1);
  const double of_median = std::numbers::pi / 2 * variance / n;  // of normal samples, in the limit
  result.measured = true;
  result.factor = 1 + (middle - 1) * expected * expected / (expected * expected + of_median);
  result.spread = median(spreads);
  result.relative_error = normal_equivalent(std::sqrt(variance * (1 + 1 / n)), ratios.size());
  return result;
}

}  // namespace sibyl

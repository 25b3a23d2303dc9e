#include "calibration/composition.h"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

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
  result.relative_error = normal_equivalent(std::sqrt(squares / (n - 1) * (1 + 1 / n)), ratios.size());
  return result;
}

}  // namespace sibyl

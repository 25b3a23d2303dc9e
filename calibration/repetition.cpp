#include "calibration/repetition.h"

#include <cmath>
#include <numeric>

namespace sibyl {

bool Repetition::another(std::span<const double> times) const {
  const double n = static_cast<double>(times.size());
  if (n < samples) return true;
  if (!known_to || n < 2) return false;
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / n;
  if (mean < long_kernel) return false;
  double squares = 0;
  for (const double time : times) squares += (time - mean) * (time - mean);
  return std::sqrt(squares / (n - 1) / n) > *known_to * mean;
}

}  // namespace sibyl

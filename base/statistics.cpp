#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sibyl {

double median(std::span<const double> values) {
  if (values.empty()) return 0.0;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : 0.5 * (sorted[half - 1] + sorted[half]);
}

double mean_of_usual(std::span<const double> values) {
  const double most = 2.0 * median(values);
  double sum = 0.0;
  std::size_t usual = 0;
  for (const double value : values) {
    if (value > most) continue;
    sum += value;
    ++usual;
  }
  return usual > 0 ? sum / static_cast<double>(usual) : 0.0;
}

double relative_spread(std::span<const double> values, double around) {
  if (around == 0.0) return 0.0;
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - around));
  return 1.4826 * median(distances) / std::abs(around);
}

}  // namespace sibyl

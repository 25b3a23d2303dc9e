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

Pooled pooled(std::span<const Known> values) {
  Pooled result;
  if (values.empty()) return result;
  if (values.size() == 1) return {values[0].value, values[0].error, {1.0}};
  const auto sum = [&](auto&& of) {
    double total = 0.0;
    for (const Known& known : values) total += of(known);
    return total;
  };
  const auto square = [](double x) { return x * x; };
  constexpr double best = 1e-9;  // of itself: nothing is known better
  const auto error_of = [&](const Known& known) { return std::max(known.error, best * std::abs(known.value)); };
  const auto weight = [&](const Known& known) { return 1 / square(error_of(known)); };
  const double weights = sum(weight);
  const double fixed = sum([&](const Known& k) { return weight(k) * k.value; }) / weights;
  const double found = sum([&](const Known& k) { return weight(k) * square(k.value - fixed); });
  const double foretold = static_cast<double>(values.size()) - 1;
  // The weights less their squares over their sum, without the difference of two alike: one may weigh far more than all
  // the others, as where a kernel happened to take the same each time.
  double scale = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) scale += 2 * weight(values[i]) * (weight(values[j]) / weights);
  const double between = found > foretold ? (found - foretold) / scale : 0.0;  // the variance of the thing itself
  const auto of_both = [&](const Known& known) { return 1 / (square(error_of(known)) + between); };
  const double total = sum(of_both);
  for (const Known& known : values) result.weights.push_back(of_both(known) / total);
  result.mean = sum([&](const Known& k) { return of_both(k) * k.value; }) / total;
  result.error = 1 / std::sqrt(total);
  return result;
}

double mean_of_usual(std::span<const double> values, double most) {
  const double bound = most * median(values);
  double sum = 0.0;
  std::size_t usual = 0;
  for (const double value : values) {
    if (value > bound) continue;
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

#include "oracle/step_error.h"

#include <algorithm>
#include <cmath>

namespace sibyl {

StepError& StepError::operator*=(double factor) {
  for (Part& part : shared) part.size *= factor;
  own *= factor;
  return *this;
}

Seconds standard_deviation(const StepError& error) { return deviation_of_difference(error, {}); }

Seconds deviation_of_difference(const StepError& a, const StepError& b) {
  double variance = a.own.value() * a.own.value() + b.own.value() * b.own.value();
  const auto add = [&](Seconds size) { variance += size.value() * size.value(); };
  auto left = a.shared.begin(), right = b.shared.begin();
  while (left != a.shared.end() || right != b.shared.end()) {
    if (right == b.shared.end() || (left != a.shared.end() && left->cause < right->cause))
      add((left++)->size);
    else if (left == a.shared.end() || right->cause < left->cause)
      add((right++)->size);
    else
      add((left++)->size - (right++)->size);
  }
  return Seconds{std::sqrt(variance)};
}

bool told_apart(Seconds a, const StepError& error_of_a, Seconds b, const StepError& error_of_b) {
  const Seconds shorter = std::min(a, b), unsure = deviation_of_difference(error_of_a, error_of_b) * ninety_percent;
  return std::max(a, b) - shorter > std::max(unsure, shorter * negligible_time);
}

}  // namespace sibyl

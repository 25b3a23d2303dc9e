#include "profiler/interpolation/family_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sibyl::interpolation {
namespace {

constexpr std::size_t neighbour_count = 14;
constexpr double variant_gap = 1.0;  // another variant is as far as a factor of 2 in one size
constexpr double ridge = 0.02;       // shrinks slopes: weight of "no slope" beside the samples
constexpr double softening = 1e-3;   // squared distance under which a neighbour counts as at the spot
constexpr double slack = 0.1;        // how far a plane may leave the range of its neighbours
constexpr double far_away = 2.0;     // distance (factors of 2) from the nearest sample beyond which it is a guess
constexpr std::size_t tried_for_error = 300;

constexpr std::size_t unknowns = max_features + 1;
using Vector = std::array<double, unknowns>;
using Matrix = std::array<Vector, unknowns>;

// Solves the symmetric positive definite A x = b by Cholesky's decomposition; returns x[0], the value at the query.
double solve_for_first(Matrix& a, Vector& b) {
  for (std::size_t i = 0; i < unknowns; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      a[i][j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / a[j][j];
    }
  for (std::size_t i = 0; i < unknowns; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = unknowns; i-- > 0;) {
    for (std::size_t k = i + 1; k < unknowns; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b[0];
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0.0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

FamilyFit::FamilyFit(std::vector<FitPoint> points) {
  std::vector<Site> sites;
  for (const FitPoint& p : points) {
    sites.push_back(p.site);
    y_.push_back(p.y);
    workspace_.push_back(p.workspace);
    kept_.push_back(p.kept);
    alone_.push_back(p.alone);
    cached_.push_back(p.cached);
  }
  points_ = NearestSites(std::move(sites), variant_gap);

  if (points.size() < 3) {
    error_ = 0.3;
    typical_distance_ = 1.0;
    return;
  }
  const std::size_t stride = std::max<std::size_t>(1, points.size() / tried_for_error);
  std::vector<double> residuals, distances;
  for (std::size_t i = 0; i < points.size(); i += stride) {
    const auto index = static_cast<std::uint32_t>(i);
    const std::vector<Neighbour> others = neighbours(points_[i], index);
    residuals.push_back(std::abs(answer(points_[i], others).y - y_[i]));
    distances.push_back(std::sqrt(others.front().squared_distance));
  }
  // A normal error's median is 0.674 and its 90 % point 1.645 standard deviations; heavy tails make the second larger.
  median_error_ = quantile(residuals, 0.5);
  p90_error_ = quantile(residuals, 0.9);
  error_ = std::max({median_error_ / 0.674, p90_error_ / 1.645, 0.01});
  typical_distance_ = std::max(quantile(distances, 0.5), 0.1);
}

std::vector<Neighbour> FamilyFit::neighbours(const Site& query, std::uint32_t skip) const {
  return points_.nearest(query, neighbour_count, skip);
}

FitAnswer FamilyFit::answer(const Site& query, const std::vector<Neighbour>& near) const {
  FitAnswer result;
  if (near.empty()) return result;

  Matrix a{};
  Vector b{};
  double weight_sum = 0.0, alone = 0.0, cached = 0.0, mean = 0.0, low = y_[near.front().index], high = low;
  for (const Neighbour& n : near) {
    const double w = 1.0 / (n.squared_distance + softening);
    const double y = y_[n.index];
    weight_sum += w;
    mean += w * y;
    low = std::min(low, y);
    high = std::max(high, y);
    result.workspace += w * workspace_[n.index];
    result.kept += w * kept_[n.index];
    alone += w * alone_[n.index];
    cached += w * cached_[n.index];
  }
  mean /= weight_sum;
  result.workspace /= weight_sum;
  result.kept /= weight_sum;
  result.alone = alone / weight_sum;
  result.cached = cached / weight_sum;
  for (const Neighbour& n : near) {
    const double w = 1.0 / (n.squared_distance + softening) / weight_sum;
    Vector row{1.0};
    for (std::size_t f = 0; f < max_features; ++f) row[f + 1] = points_[n.index].at[f] - query.at[f];
    for (std::size_t i = 0; i < unknowns; ++i) {
      for (std::size_t j = 0; j <= i; ++j) a[i][j] += w * row[i] * row[j];
      b[i] += w * row[i] * (y_[n.index] - mean);
    }
  }
  for (std::size_t i = 1; i < unknowns; ++i) a[i][i] += ridge;
  result.y = std::clamp(mean + solve_for_first(a, b), low - slack, high + slack);

  const double nearest = std::sqrt(near.front().squared_distance);
  const double growth = std::max(0.0, nearest / std::max(typical_distance_, 1e-9) - 1.0);
  result.inside = points_.size() >= 2 && nearest <= std::max(far_away, 2 * typical_distance_);
  result.error = error_ * (1.0 + 0.5 * growth);
  if (!result.inside) result.error = std::max(result.error, 0.3);
  return result;
}

}  // namespace sibyl::interpolation

#include "netmodel/between_counts.h"

#include <algorithm>
#include <cmath>

namespace sibyl {
namespace {

struct Count {
  double ranks = 0.0;
  [[nodiscard]] double moved() const { return 1 - 1 / ranks; }  // of the bytes, by each rank
};

// What bytes take beyond the shortest time.
double transfer(Count few, double of_few, Count many, double of_many, Count wanted) {
  const double per_byte_of_few = of_few / few.moved(), per_byte_of_many = of_many / many.moved();
  if (of_few > 0 && per_byte_of_many > per_byte_of_few) {
    const double share = std::log(wanted.ranks / few.ranks) / std::log(many.ranks / few.ranks);
    return wanted.moved() * per_byte_of_few * std::pow(per_byte_of_many / per_byte_of_few, share);
  }
  return std::lerp(of_few, of_many, (1 / few.ranks - 1 / wanted.ranks) / (1 / few.ranks - 1 / many.ranks));
}

// Sizes of both, as far as both reach; or the ends of the gap between them.
std::vector<double> common_sizes(const MeasuredPlacement& a, const MeasuredPlacement& b) {
  const double from = std::max(a.points.front().bytes, b.points.front().bytes);
  const double to = std::min(a.points.back().bytes, b.points.back().bytes);
  std::vector<double> sizes{std::min(from, to), std::max(from, to)};
  for (const MeasuredPlacement* one : {&a, &b})
    for (const CurvePoint& point : one->points)
      if (point.bytes > from && point.bytes < to) sizes.push_back(point.bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

MeasuredPlacement between_counts(const MeasuredPlacement& fewer, const MeasuredPlacement& more, int ranks) {
  const Count few{static_cast<double>(fewer.placement.ranks_per_node)};
  const Count many{static_cast<double>(more.placement.ranks_per_node)};
  const Count wanted{static_cast<double>(ranks)};
  MeasuredPlacement result{fewer.placement, {}, std::max(fewer.error, more.error)};
  result.placement.ranks_per_node = ranks;
  const std::vector<double> sizes = common_sizes(fewer, more);
  const double least_of_few = interpolated(fewer.points, sizes.front());
  const double least_of_many = interpolated(more.points, sizes.front());
  const double least = std::lerp(least_of_few, least_of_many, (wanted.ranks - few.ranks) / (many.ranks - few.ranks));
  for (const double bytes : sizes) {
    const double of_few = interpolated(fewer.points, bytes) - least_of_few;
    const double of_many = interpolated(more.points, bytes) - least_of_many;
    result.points.push_back({bytes, least + transfer(few, of_few, many, of_many, wanted), 0.0});
  }
  never_falling(result.points);
  return result;
}

}  // namespace sibyl

#include "netmodel/between_counts.h"

#include <algorithm>
#include <cmath>

namespace sibyl {
namespace {

using Points = std::vector<CurvePoint>;

struct Counts {
  double few = 0.0, many = 0.0, wanted = 0.0;
  [[nodiscard]] double straight(double of_few, double of_many) const {
    return std::lerp(of_few, of_many, (wanted - few) / (many - few));
  }
};

double moved(double ranks) { return 1 - 1 / ranks; }  // of the bytes, by each rank

// Sizes of both, as far as both reach; or the ends of the gap between them.
std::vector<double> common_sizes(const Points& a, const Points& b) {
  const double from = std::max(a.front().bytes, b.front().bytes);
  const double to = std::min(a.back().bytes, b.back().bytes);
  std::vector<double> sizes{std::min(from, to), std::max(from, to)};
  for (const Points* one : {&a, &b})
    for (const CurvePoint& point : *one)
      if (point.bytes > from && point.bytes < to) sizes.push_back(point.bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

// Beyond what `least` bytes take, by byte that a rank moves.
double per_byte(const Points& points, double ranks, double least, double bytes) {
  return (interpolated(points, bytes) - interpolated(points, least)) / (bytes * moved(ranks));
}

// Beyond the longest size straight on, at the pace of the last two.
double extended(const Points& points, double bytes) {
  const CurvePoint& last = points.back();
  if (bytes <= last.bytes || points.size() < 2) return interpolated(points, bytes);
  const CurvePoint& before = points[points.size() - 2];
  return last.seconds + (last.seconds - before.seconds) * (bytes - last.bytes) / (last.bytes - before.bytes);
}

// At sizes whose parts among the wanted are as large.
Points scaled(Points points, double by) {
  for (CurvePoint& point : points) point.bytes *= by;
  return points;
}

Points on_own_links(const Points& fewer, const Points& more, const Counts& counts) {
  const Points few = scaled(fewer, counts.wanted / counts.few), many = scaled(more, counts.wanted / counts.many);
  std::vector<double> sizes = common_sizes(few, many);
  const std::vector<double> timed = common_sizes(fewer, more);
  if (timed.front() < sizes.front()) sizes.insert(sizes.begin(), timed.front());
  if (timed.back() > sizes.back()) sizes.push_back(timed.back());
  Points points;
  for (const double bytes : sizes)
    points.push_back({bytes, counts.straight(extended(few, bytes), extended(many, bytes)), 0.0});
  return points;
}

// A size at which a byte is no slower among many for once lies straight in 1/p, as what is moved and copied does.
Points on_shared_ways(const Points& few, const Points& many, const Counts& counts) {
  const std::vector<double> sizes = common_sizes(few, many);
  const double first = sizes.front();
  const double least = counts.straight(interpolated(few, first), interpolated(many, first));
  const double share = std::log(counts.wanted / counts.few) / std::log(counts.many / counts.few);
  Points points;
  for (const double bytes : sizes) {
    const double of_few = per_byte(few, counts.few, first, bytes), of_many = per_byte(many, counts.many, first, bytes);
    const double beyond =
        of_few > 0 && of_many > of_few
            ? moved(counts.wanted) * of_few * std::pow(of_many / of_few, share)
            : std::lerp(moved(counts.few) * of_few, moved(counts.many) * of_many,
                        (1 / counts.few - 1 / counts.wanted) / (1 / counts.few - 1 / counts.many));
    points.push_back({bytes, least + beyond * bytes, 0.0});
  }
  return points;
}

}  // namespace

MeasuredPlacement between_counts(const MeasuredPlacement& fewer, const MeasuredPlacement& more, int ranks) {
  const Points &few = fewer.points, &many = more.points;
  const Counts counts{static_cast<double>(fewer.placement.ranks_per_node),
                      static_cast<double>(more.placement.ranks_per_node), static_cast<double>(ranks)};
  const std::vector<double> sizes = common_sizes(few, many);
  const bool shared = per_byte(many, counts.many, sizes.front(), sizes.back()) >
                      per_byte(few, counts.few, sizes.front(), sizes.back());
  MeasuredPlacement result{fewer.placement, shared ? on_shared_ways(few, many, counts) : on_own_links(few, many, counts),
                           std::max(fewer.error, more.error)};
  result.placement.ranks_per_node = ranks;
  never_falling(result.points);
  return result;
}

}  // namespace sibyl

#include "netmodel/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/statistics.h"

namespace sibyl {
namespace {

struct Line {
  double alpha = 0.0, beta = 0.0;
  double cost = 0.0;  // sum of Huber losses of relative residuals
};

constexpr double huber_width = 0.05;       // a residual above 5 % counts linearly
constexpr double price_of_segment = 2e-3;  // per segment: what a further one must save, beside a fifth of the cost
constexpr std::size_t least_points = 3;    // of a segment
constexpr double among_the_longest = 4;    // times as long as one of these is the longest, at most

double huber(double residual) {
  const double size = std::abs(residual);
  return size <= huber_width ? residual * residual : huber_width * (2 * size - huber_width);
}

// Least squares of w (alpha + beta x - t)^2 with beta >= 0, and alpha >= 0 where messages may be short.
Line weighted_line(std::span<const CurvePoint> points, std::span<const double> weights, bool from_zero) {
  double sum = 0, sx = 0, sxx = 0, st = 0, sxt = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double w = weights[i], x = points[i].bytes, t = points[i].seconds;
    sum += w, sx += w * x, sxx += w * x * x, st += w * t, sxt += w * x * t;
  }
  const double determinant = sum * sxx - sx * sx;
  Line line{st / sum, 0.0, 0.0};
  if (determinant > 1e-12 * sum * sxx) {
    line.beta = (sum * sxt - sx * st) / determinant;
    line.alpha = (st - line.beta * sx) / sum;
    if (line.beta < 0) line = Line{st / sum, 0.0, 0.0};
    if (line.alpha < 0 && from_zero) line = Line{0.0, sxt / sxx, 0.0};
  }
  return line;
}

Line robust_line(std::span<const CurvePoint> points, bool from_zero) {
  std::vector<double> weights(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) weights[i] = 1.0 / (points[i].seconds * points[i].seconds);
  Line line;
  for (int pass = 0; pass < 8; ++pass) {
    line = weighted_line(points, weights, from_zero);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double t = points[i].seconds;
      const double residual = std::abs(line.alpha + line.beta * points[i].bytes - t) / t;
      weights[i] = std::min(1.0, huber_width / std::max(residual, 1e-12)) / (t * t);
    }
  }
  for (const CurvePoint& point : points)
    line.cost += huber((line.alpha + line.beta * point.bytes - point.seconds) / point.seconds);
  return line;
}

struct Cut {
  std::size_t from = 0;
  Line line;
};

double total(const std::vector<Cut>& cuts) {
  double sum = 0;
  for (const Cut& cut : cuts) sum += cut.line.cost;
  return sum;
}

std::vector<Cut> best_cuts(const std::vector<CurvePoint>& points) {
  const std::span<const CurvePoint> all(points);
  const std::size_t n = points.size();
  std::vector<Cut> one{{0, robust_line(all, true)}};
  std::vector<Cut> two, three;
  double two_cost = std::numeric_limits<double>::infinity(), three_cost = two_cost;
  for (std::size_t i = least_points; i + least_points <= n; ++i) {
    const Line head = robust_line(all.first(i), true);
    std::vector<Cut> split{{0, head}, {i, robust_line(all.subspan(i), false)}};
    if (total(split) < two_cost) two_cost = total(split), two = split;
    for (std::size_t j = i + least_points; j + least_points <= n; ++j) {
      std::vector<Cut> thrice{
          {0, head}, {i, robust_line(all.subspan(i, j - i), false)}, {j, robust_line(all.subspan(j), false)}};
      if (total(thrice) < three_cost) three_cost = total(thrice), three = std::move(thrice);
    }
  }
  const auto earns = [](double before, double after) { return after + price_of_segment < 0.8 * before; };
  const std::vector<Cut>& best = !two.empty() && earns(total(one), two_cost) ? two : one;
  return !three.empty() && earns(total(best), three_cost) ? three : best;
}

// What longer messages follow: the slope from the longest ones of a segment to all that are half as long or less, in
// the median. Least squares of relative errors ask as much of the shortest, whose least step bends them by some
// percent.
Line as_the_longest(std::span<const CurvePoint> points, Line line, bool from_zero) {
  std::vector<double> slopes, starts;
  for (const CurvePoint& longer : points)
    for (const CurvePoint& point : points)
      if (longer.bytes * among_the_longest >= points.back().bytes && 2 * point.bytes <= longer.bytes)
        slopes.push_back((longer.seconds - point.seconds) / (longer.bytes - point.bytes));
  if (slopes.size() < least_points) return line;
  line.beta = std::max(0.0, median(slopes));
  for (const CurvePoint& point : points) starts.push_back(point.seconds - line.beta * point.bytes);
  line.alpha = median(starts);
  if (from_zero) line.alpha = std::max(0.0, line.alpha);
  return line;
}

// Where a segment begins, between two sampled sizes: where its line crosses the one before, as where a port is full, a
// cache or a token bucket empty; where they do not cross there, protocols switch, and it is the geometric middle.
double border(const CurvePoint& below, const CurvePoint& above, const Line& before, const Line& after) {
  const double crossing = (before.alpha - after.alpha) / (after.beta - before.beta);
  return crossing >= below.bytes && crossing <= above.bytes ? crossing : std::sqrt(below.bytes * above.bytes);
}

}  // namespace

std::vector<CurvePoint> merged(std::vector<CurvePoint> points) {
  std::erase_if(points, [](const CurvePoint& p) {
    return !(p.bytes >= 0 && p.seconds > 0 && std::isfinite(p.bytes) && std::isfinite(p.seconds));
  });
  std::ranges::sort(points, [](const CurvePoint& a, const CurvePoint& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds;
  });
  std::vector<CurvePoint> result;
  for (std::size_t begin = 0, end = 0; begin < points.size(); begin = end) {
    while (end < points.size() && points[end].bytes == points[begin].bytes) ++end;
    const std::size_t middle = begin + (end - begin) / 2;
    result.push_back(points[middle]);
    if ((end - begin) % 2 == 0) result.back().seconds = (points[middle - 1].seconds + points[middle].seconds) / 2;
    std::vector<double> seconds;
    for (std::size_t i = begin; i < end; ++i) seconds.push_back(points[i].seconds);
    const double between = seconds.size() == 2 ? (seconds[1] - seconds[0]) / 2 / result.back().seconds
                                               : relative_spread(seconds, result.back().seconds);
    result.back().spread = std::max(result.back().spread, between);
  }
  return result;
}

Curve Curve::line(double alpha, double beta) {
  Curve curve;
  curve.segments_.push_back({0.0, alpha, beta, 0.0});
  return curve;
}

Curve Curve::fit(std::vector<CurvePoint> samples) {
  const std::vector<CurvePoint> points = merged(std::move(samples));
  Curve curve;
  if (points.empty()) return curve;
  const Line* before = nullptr;
  std::vector<Cut> cuts = best_cuts(points);
  Cut& last = cuts.back();
  last.line = as_the_longest(std::span(points).subspan(last.from), last.line, cuts.size() == 1);
  for (const Cut& cut : cuts) {
    const double from = before == nullptr ? 0.0 : border(points[cut.from - 1], points[cut.from], *before, cut.line);
    const double floor = before == nullptr ? 0.0 : curve.seconds(from);
    curve.segments_.push_back({from, cut.line.alpha, cut.line.beta, floor});
    before = &cut.line;
  }
  double squares = 0;
  for (const CurvePoint& point : points) {
    const double residual = (curve.seconds(point.bytes) - point.seconds) / point.seconds;
    squares += residual * residual + point.spread * point.spread;
    curve.sizes_.push_back(point.bytes);
  }
  curve.error_ = std::sqrt(squares / static_cast<double>(points.size()));
  curve.smallest_ = points.front().bytes;
  curve.largest_ = points.back().bytes;
  return curve;
}

// Longer messages may take more of hosts than short ones beside the wire, so where the last line meets the axis tells
// less than how far messages are ahead of the wire.
TokenBucket Curve::bucket() const {
  constexpr double at_least = 0.5;
  TokenBucket found;
  if (segments_.size() < 2) return found;
  const double begin = segments_.front().alpha, pace = segments_.back().beta;
  for (const double size : sizes_) {
    const double wire = size * pace, ahead = wire - (seconds(size) - begin);
    if (ahead >= at_least * wire && ahead > found.held) found = {pace, ahead};
  }
  return found;
}

const Curve::Segment& Curve::segment(double bytes) const {
  const auto after = std::ranges::upper_bound(segments_, bytes, {}, &Segment::from);
  return after == segments_.begin() ? segments_.front() : *std::prev(after);
}

double Curve::seconds(double bytes) const {
  const Segment& here = segment(bytes);
  return std::max(here.floor, here.alpha + here.beta * bytes);
}

Ranged Curve::seconds(const Ranged& bytes) const {
  const Segment &first = segment(bytes.begin), &last = segment(bytes.end);
  const bool one = &first == &last;
  const Ranged held{first.floor, last.floor, one};
  const Ranged line{first.alpha + first.beta * bytes.begin, last.alpha + last.beta * bytes.end, one && bytes.straight};
  return max(held, line);
}

bool Curve::sampled(double bytes) const {
  return std::ranges::any_of(sizes_, [&](double size) { return std::abs(size - bytes) <= 0.02 * size; });
}

}  // namespace sibyl

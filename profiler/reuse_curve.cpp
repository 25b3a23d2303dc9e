#include "profiler/reuse_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace sibyl {
namespace {

double log_of(Bytes bytes) { return std::log2(std::max(1.0, bytes.value())); }

}  // namespace

ReuseCurve::ReuseCurve(const std::vector<ReuseSample>& samples, const std::vector<ReadSample>& sweep, Bytes cache,
                       const std::vector<LastingSample>& lasting) {
  std::map<double, std::vector<Point>> by_step;
  const bool measured = samples.size() > 1;
  if (measured)
    for (const ReuseSample& sample : samples)
      by_step[log_of(sample.step)].push_back({log_of(sample.distance), 1 / sample.rate.value()});
  if (!measured && sweep.size() > 1)
    for (const ReadSample& sample : sweep)
      by_step[0].push_back({log_of(sample.bytes), sample.time.value() / sample.bytes.value()});
  if (by_step.empty() && cache.value() > 0) by_step[0] = {{log_of(cache), 0.0}, {log_of(2.0 * cache), 1.0}};
  for (auto& [log_step, points] : by_step) {
    std::ranges::sort(points, {}, &Point::log_bytes);
    rows_.push_back({log_step, std::move(points)});
  }
  never_faster();
  if (known()) learn(lasting);
}

// As shares of what is saved by what was touched just now; of nothing, where that lies in memory, too.
void ReuseCurve::learn(const std::vector<LastingSample>& samples) {
  std::optional<double> untouched, at_first;
  Seconds youngest{std::numeric_limits<double>::infinity()};
  for (const LastingSample& sample : samples) {
    const double time = 1 / sample.rate.value();
    if (sample.touches == 0) untouched = time;
    if (sample.touches > 1 && sample.age < youngest) youngest = sample.age, at_first = time;
  }
  if (!untouched || !at_first || *untouched <= *at_first * (1 + read_margin)) return;
  for (const LastingSample& sample : samples)
    if (sample.touches > 1)
      aged_.push_back(
          {sample.age, std::clamp((*untouched - 1 / sample.rate.value()) / (*untouched - *at_first), 0.0, 1.0)});
  std::ranges::sort(aged_, {}, &Aged::age);
  for (std::size_t i = 1; i < aged_.size(); ++i) aged_[i].kept = std::min(aged_[i].kept, aged_[i - 1].kept);
}

// A disturbance makes what is near slower, nothing what is far faster.
void ReuseCurve::never_faster() {
  for (std::size_t r = rows_.size(); r-- > 0;) {
    std::vector<Point>& points = rows_[r].points;
    for (std::size_t i = points.size(); i-- > 0;) {
      if (i + 1 < points.size()) points[i].time = std::min(points[i].time, points[i + 1].time);
      if (r + 1 < rows_.size())
        points[i].time = std::min(points[i].time, time_of_byte(rows_[r + 1], points[i].log_bytes));
    }
  }
}

double ReuseCurve::time_of_byte(const Row& row, double log_distance) {
  const auto after = std::ranges::lower_bound(row.points, log_distance, {}, &Point::log_bytes);
  if (after == row.points.begin()) return row.points.front().time;
  if (after == row.points.end()) return row.points.back().time;
  const Point &a = *(after - 1), &b = *after;
  return std::lerp(a.time, b.time, (log_distance - a.log_bytes) / (b.log_bytes - a.log_bytes));
}

double ReuseCurve::time_of_byte(Bytes distance, Bytes step) const {
  const double log_distance = log_of(distance), log_step = log_of(step);
  const auto after = std::ranges::lower_bound(rows_, log_step, {}, &Row::log_step);
  if (after == rows_.begin()) return time_of_byte(rows_.front(), log_distance);
  if (after == rows_.end()) return time_of_byte(rows_.back(), log_distance);
  const Row &a = *(after - 1), &b = *after;
  return std::lerp(time_of_byte(a, log_distance), time_of_byte(b, log_distance),
                   (log_step - a.log_step) / (b.log_step - a.log_step));
}

double ReuseCurve::kept(Seconds age) const {
  const auto after = std::ranges::lower_bound(aged_, age, {}, &Aged::age);
  if (after == aged_.begin()) return 1;
  if (after == aged_.end()) return aged_.back().kept;
  const Aged &a = *(after - 1), &b = *after;
  return std::lerp(a.kept, b.kept, (age - a.age) / (b.age - a.age));
}

double ReuseCurve::found(const Since& last, Bytes near, Bytes apart) const {
  if (!known()) return 0;
  const double saved = memory() - time_of_byte(near, near);
  if (saved <= 0) return 0;
  return std::clamp((memory() - time_of_byte(last.distance, apart)) / saved, 0.0, 1.0) * kept(last.age);
}

}  // namespace sibyl

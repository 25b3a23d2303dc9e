#include "profiler/cache.h"

#include <algorithm>
#include <cmath>

namespace sibyl {
namespace {

BytesPerSecond rate(const ReadSample& sample) { return sample.bytes / sample.time; }

}  // namespace

std::vector<Bytes> working_sets(Bytes reported) {
  std::vector<Bytes> sizes;
  const Bytes last = 2.0 * reported;
  for (Bytes size{256.0 * 1024}; size < last; size *= 2.0) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

Bytes effective_cache(std::span<const ReadSample> sweep, Bytes reported) {
  const auto smaller = [](const ReadSample& a, const ReadSample& b) { return a.bytes < b.bytes; };
  const auto largest = std::max_element(sweep.begin(), sweep.end(), smaller);
  if (largest == sweep.end() || largest->bytes <= reported) return reported;
  const BytesPerSecond memory = rate(*largest) * (1.0 + read_margin);
  Bytes cached;
  for (const ReadSample& sample : sweep)
    if (rate(sample) > memory) cached = std::max(cached, sample.bytes);
  return cached.value() > 0 ? std::min(cached, reported) : reported;
}

Bytes out_of_cache(Bytes effective, Bytes reported) { return std::max(2.0 * effective, reported); }

ReuseCurve::ReuseCurve(std::vector<ReadSample> sweep, Bytes cache) {
  if (sweep.size() < 2) {
    if (cache.value() > 0) points_ = {{std::log2(cache.value()), 0.0}, {std::log2(2.0 * cache.value()), 1.0}};
    return;
  }
  std::ranges::sort(sweep, {}, &ReadSample::bytes);
  for (const ReadSample& sample : sweep)
    points_.push_back({std::log2(sample.bytes.value()), sample.time.value() / sample.bytes.value()});
  for (std::size_t i = points_.size() - 1; i-- > 0;) points_[i].time = std::min(points_[i].time, points_[i + 1].time);
}

double ReuseCurve::time_of_byte(Bytes distance) const {
  const double at = std::log2(std::max(1.0, distance.value()));
  const auto after = std::ranges::lower_bound(points_, at, {}, &Point::log_bytes);
  if (after == points_.begin()) return points_.front().time;
  if (after == points_.end()) return points_.back().time;
  const Point &a = *(after - 1), &b = *after;
  return std::lerp(a.time, b.time, (at - a.log_bytes) / (b.log_bytes - a.log_bytes));
}

double ReuseCurve::found(Bytes distance, Bytes near) const {
  if (!known()) return 0;
  const double memory = points_.back().time, saved = memory - time_of_byte(near);
  return saved > 0 ? std::clamp((memory - time_of_byte(distance)) / saved, 0.0, 1.0) : 0.0;
}

}  // namespace sibyl

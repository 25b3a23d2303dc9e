#include "netmodel/point_to_point.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace sibyl {
// Of a pair in one node that send each other both messages are the node's.
PointToPoint::Measured PointToPoint::fit(std::span<const PointToPointSample> samples, bool same_node) {
  std::map<int, std::vector<CurvePoint>> one_way, both_ways;
  for (const PointToPointSample& sample : samples) {
    if (sample.same_node != same_node || sample.pairs < 1) continue;
    const int at_once = sample.both_ways && same_node ? 2 * sample.pairs : sample.pairs;
    (sample.both_ways ? both_ways : one_way)[at_once].push_back(
        {sample.bytes.value(), sample.time.value(), sample.spread});
  }
  const auto fitted = [](std::map<int, std::vector<CurvePoint>>& by_count) {
    Curves curves;
    for (auto& [count, points] : by_count)
      if (Curve curve = Curve::fit(std::move(points)); !curve.empty()) curves.emplace_back(count, std::move(curve));
    return curves;
  };
  return {fitted(one_way), fitted(both_ways)};
}

PointToPoint::PointToPoint(const Topology& topology, std::span<const PointToPointSample> samples)
    : topology_(topology), inside_(fit(samples, true)), across_(fit(samples, false)) {
  // A ring uses all of a device's links, so the rate is that of the device, not of one pair of a mesh.
  inside_latency_ = topology.path(0).latency.value();
  inside_rate_ = topology.spec().device_link.left().value() * device_link_efficiency;
}

void PointToPoint::set_device_link(Seconds latency, BytesPerSecond rate, double relative_error) {
  inside_latency_ = latency.value();
  inside_rate_ = rate.value();
  inside_error_ = relative_error;
}

void PointToPoint::set_device_link(const PointToPoint& other, double latency, double rate) {
  inside_latency_ = other.inside_latency_ * latency;
  inside_rate_ = other.inside_rate_ * rate;
  inside_error_ = other.inside_error_;
}

double PointToPoint::from_samples(const Curves& measured, double bytes, int pairs, bool shared) const {
  // No curve of more pairs may lie below one of fewer: take the highest up to `pairs`.
  double below = 0.0;
  const Curve* nearest = nullptr;
  int nearest_pairs = 0;
  for (const auto& [count, curve] : measured) {
    const double here = std::max(below, curve.seconds(bytes));
    if (count == pairs) return here;
    if (count > pairs) {
      if (nearest == nullptr) return here;
      const double share = static_cast<double>(pairs - nearest_pairs) / (count - nearest_pairs);
      return below + share * (here - below);
    }
    below = here;
    nearest = &curve;
    nearest_pairs = count;
  }
  if (!shared) return below;
  const double growing = std::max(0.0, below - nearest->seconds(0.0));
  return below + growing * (static_cast<double>(pairs) / nearest_pairs - 1.0);
}

double PointToPoint::from_topology(double bytes, Way way) const {
  if (way.level == 0) return inside_latency_ + bytes / inside_rate_;
  const Path& path = topology_.path(way.level);
  return path.latency.value() + bytes * way.pairs / (path.bandwidth.value() * nic_efficiency);
}

double PointToPoint::seconds(double bytes, Way way) const {
  const bool same_node = way.level == 0;
  const Curves& measured = curves(way);
  double result = measured.empty() ? from_topology(bytes, way) : from_samples(measured, bytes, way.pairs, !same_node);
  // What was measured under one switch goes farther: more switches.
  if (!measured.empty() && way.level > 1)
    result += (topology_.path(way.level).latency - topology_.path(1).latency).value();
  return result;
}

double PointToPoint::error(Way way) const {
  const Curves& measured = curves(way);
  if (measured.empty()) return way.level == 0 ? inside_error_ : unmeasured_error;
  double worst = 0.0;
  bool known_pairs = false;
  for (const auto& [count, curve] : measured) {
    worst = std::max(worst, curve.error());
    known_pairs = known_pairs || count == way.pairs;
  }
  return known_pairs && way.level <= 1 ? worst : std::hypot(worst, 0.10);
}

Estimate PointToPoint::time(Bytes bytes, Way way) const {
  Estimate estimate{Seconds{seconds(bytes.value(), way)}, error(way), Provenance::estimated};
  const Curves& measured = curves(way);
  if (measured.empty()) {
    // One message alone has only its own links of a mesh.
    if (way.level == 0) {
      const double share = topology_.path(0).bandwidth / topology_.spec().device_link.left();
      estimate.time = Seconds{inside_latency_ + bytes.value() / (inside_rate_ * share)};
    }
    return estimate;
  }
  const auto known = std::ranges::find(measured, way.pairs, &std::pair<int, Curve>::first);
  if (known == measured.end() || way.level > 1) {
    estimate.provenance = Provenance::interpolated;
    return estimate;
  }
  const Curve& curve = known->second;
  const bool far = bytes.value() > 4 * curve.largest() || bytes.value() < curve.smallest() / 4;
  estimate.provenance = curve.sampled(bytes.value()) ? Provenance::measured
                        : far                        ? Provenance::estimated
                                                     : Provenance::interpolated;
  if (far) estimate.relative_error = std::hypot(estimate.relative_error, 0.10);
  return estimate;
}

}  // namespace sibyl

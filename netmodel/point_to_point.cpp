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

Ranged FoundWay::from_curves(const Ranged& bytes) const {
  Ranged below;
  for (const auto& [count, curve] : curves_) below = max(below, curve.seconds(bytes));
  if (more_ != nullptr) below += share_ * (max(below, more_->seconds(bytes)) - below);
  if (growth_ > 0) {
    // Of a bucket all have one burst.
    const Ranged grown = below + max(0.0, below - empty_) * growth_;
    const Ranged at_once = bucket_.held > 0 ? curves_.back().second.seconds(bytes * (1 + growth_)) : 0.0;
    below = max(grown, at_once);
  }
  return below + farther_;
}

FoundWay PointToPoint::find(Way way) const {
  FoundWay found;
  const Curves& measured = curves(way);
  if (measured.empty()) {
    const Path& path = topology_.path(way.level);
    const bool inside = way.level == 0;
    found.latency_ = inside ? inside_latency_ : path.latency.value();
    found.pairs_ = inside ? 1.0 : way.pairs;
    // Who shares a NIC still has a way of its own to it, slower or faster.
    found.rate_ =
        inside ? inside_rate_
               : nic_efficiency * std::min(topology_.spec().nic_left().value(), path.bandwidth.value() * found.pairs_);
    return found;
  }
  // What was measured under one switch goes farther: more switches.
  if (way.level > 1) found.farther_ = (topology_.path(way.level).latency - topology_.path(1).latency).value();
  const auto more = std::ranges::upper_bound(measured, way.pairs, {}, &std::pair<int, Curve>::first);
  const auto fewer = static_cast<std::size_t>(more - measured.begin());
  if (fewer == 0) {
    found.curves_ = std::span(measured).first(1);
    return found;
  }
  found.curves_ = std::span(measured).first(fewer);
  const auto& [nearest_pairs, nearest] = measured[fewer - 1];
  if (way.level > 0) found.bucket_ = nearest.bucket();
  if (nearest_pairs == way.pairs) return found;
  if (more != measured.end()) {
    found.more_ = &more->second;
    found.share_ = (way.pairs - nearest_pairs) / (more->first - nearest_pairs);
  } else if (way.level > 0) {
    found.empty_ = nearest.seconds(0.0);
    found.growth_ = way.pairs / nearest_pairs - 1.0;
    found.bucket_.pace *= 1 + found.growth_;
  }
  return found;
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

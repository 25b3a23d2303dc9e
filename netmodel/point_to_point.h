// Time of one message between two ranks, by distance, by how many messages share the way, and by whether as many come
// back at once.
//
// From samples where there are any: one Curve per (same node or not, both ways or not, pairs at once). Without samples
// of both ways, those of one way stand for them. Between measured numbers of
// pairs times are interpolated; beyond, and where only one pair was measured, messages through one NIC share its rate
// fairly: the part of the time that grows with bytes is multiplied by the pairs. Without samples: latency + bytes /
// (bandwidth * efficiency) of the topology's path, marked estimated. Never falls with bytes or pairs.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/estimate.h"
#include "netmodel/curve.h"
#include "netmodel/network.h"
#include "netmodel/ranged.h"
#include "netmodel/topology.h"

namespace sibyl {

// Where a message goes: level of distance (Topology), and how many messages share one NIC (or, at level 0, the node).
// Both ways: whoever sends receives as much at once, as in every round of a collective.
struct Way {
  int level = 0;
  double pairs = 1;  // a wire that is narrower than a NIC counts as more of them
  bool both_ways = false;
};

// A Way found once, for messages of any length. Not to outlive the PointToPoint that found it.
class FoundWay {
 public:
  [[nodiscard]] Ranged seconds(const Ranged& bytes) const {
    return curves_.empty() ? latency_ + bytes * pairs_ / rate_ : from_curves(bytes);
  }
  // That of each message's share of the way.
  [[nodiscard]] const TokenBucket& bucket() const { return bucket_; }

 private:
  friend class PointToPoint;
  [[nodiscard]] Ranged from_curves(const Ranged& bytes) const;

  double latency_ = 0.0, pairs_ = 1.0, rate_ = 1.0;  // without samples
  // No curve of more pairs may lie below one of fewer: of those up to the pairs that are asked for the highest counts.
  std::span<const std::pair<int, Curve>> curves_;
  const Curve* more_ = nullptr;  // of more pairs, and how near to it
  double share_ = 0.0;
  double growth_ = 0.0, empty_ = 0.0;  // beyond the most pairs: what grows with bytes, beside that of no bytes, does so
  double farther_ = 0.0;               // seconds through more switches than were measured
  TokenBucket bucket_;                 // of the most pairs that were measured and are not more
};

class PointToPoint {
 public:
  // What a link that nobody measured gives of its nominal rate: see docs/models/network.md.
  static constexpr double device_link_efficiency = 0.80;
  static constexpr double nic_efficiency = 0.92;
  static constexpr double unmeasured_error = 0.30;

  PointToPoint(const Topology& topology, std::span<const PointToPointSample> samples);

  // A device link seen through collectives inside the node, where no message was timed alone: its latency and rate.
  void set_device_link(Seconds latency, BytesPerSecond rate, double error);
  // As it was set, carried to a link `latency` times as slow to begin and `rate` times as fast.
  void set_device_link(const PointToPoint& other, double latency, double rate);

  // What a device's links inside the node give, as far as is known.
  [[nodiscard]] BytesPerSecond device_link_rate() const { return BytesPerSecond{inside_rate_}; }

  [[nodiscard]] FoundWay find(Way way) const;
  [[nodiscard]] double seconds(double bytes, Way way) const { return find(way).seconds(bytes).value(); }
  [[nodiscard]] double error(Way way) const;
  [[nodiscard]] Estimate time(Bytes bytes, Way way) const;
  [[nodiscard]] bool measured(bool same_node) const { return !(same_node ? inside_ : across_).one_way.empty(); }

 private:
  using Curves = std::vector<std::pair<int, Curve>>;  // by messages at once, ascending
  struct Measured {
    Curves one_way, both_ways;
  };
  static Measured fit(std::span<const PointToPointSample> samples, bool same_node);
  [[nodiscard]] const Curves& curves(Way way) const {
    const Measured& measured = way.level == 0 ? inside_ : across_;
    return way.both_ways && !measured.both_ways.empty() ? measured.both_ways : measured.one_way;
  }

  Topology topology_;
  Measured inside_, across_;
  double inside_latency_ = 0.0, inside_rate_ = 0.0, inside_error_ = unmeasured_error;
};

}  // namespace sibyl

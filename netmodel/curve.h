// Time of a message against its size, fitted to samples.
//
// A message costs a latency and a time per byte, and both change where the library changes its protocol (eager,
// rendezvous). The fit is at most three segments t = alpha + beta * bytes, beta >= 0, each by least squares of
// the relative error with outliers down-weighted (Huber); where segments meet is found by trying every place, and a
// further segment must earn its two parameters. alpha of the first is a latency and >= 0. Later ones' may be below:
// what comes after the first bytes may take longer than these (a port that holds some bytes, a cache), and the slope
// is what longer messages follow. The curve never falls: where a later segment starts below the end of an earlier one
// it is held at that height.
#pragma once

#include <vector>

#include "netmodel/ranged.h"
#include "netmodel/token_bucket.h"

namespace sibyl {

struct CurvePoint {
  double bytes = 0.0;
  double seconds = 0.0;
  double spread = 0.0;  // relative
};

class Curve {
 public:
  struct Segment {
    double from = 0.0;  // bytes
    double alpha = 0.0, beta = 0.0;
    double floor = 0.0;  // the height reached before
  };

  // Points of one size are taken as one, at their median; points that are not positive and finite are left out.
  static Curve fit(std::vector<CurvePoint> points);
  static Curve line(double alpha, double beta);

  [[nodiscard]] bool empty() const { return segments_.empty(); }
  [[nodiscard]] double seconds(double bytes) const;
  [[nodiscard]] Ranged seconds(const Ranged& bytes) const;
  // One standard deviation of the samples around the curve, as a fraction, their own spread included.
  [[nodiscard]] double error() const { return error_; }
  [[nodiscard]] double smallest() const { return smallest_; }  // sampled sizes
  [[nodiscard]] double largest() const { return largest_; }
  [[nodiscard]] bool sampled(double bytes) const;  // within 2 % of a sampled size
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  // What the samples show of one: how far the messages get ahead of a wire of the last segment's slope, those of them
  // that take less than half of what it takes, beside what a message without bytes does.
  [[nodiscard]] TokenBucket bucket() const;

 private:
  [[nodiscard]] const Segment& segment(double bytes) const;

  std::vector<Segment> segments_;
  std::vector<double> sizes_;
  double error_ = 0.0, smallest_ = 0.0, largest_ = 0.0;
};

// One point per size (the median), sorted; shared with the look-up of collectives.
std::vector<CurvePoint> merged(std::vector<CurvePoint> points);

}  // namespace sibyl

// The samples of one family, and what lies between them.
//
// Interpolated is y = ln(measured time / roofline time), over the family's features (log2 of sizes). Near a query, y is
// fitted as a plane to the nearest samples, weighted by inverse squared distance (locally weighted regression:
// Cleveland & Devlin 1988), shrunk towards their mean, and kept within what they show. The error is the family's own
// leave-one-out error, grown with the distance to the nearest sample.
#pragma once

#include <vector>

#include "profiler/interpolation/nearest.h"

namespace sibyl::interpolation {

struct FitPoint {
  Site site;
  double y = 0.0;          // ln(time / roofline)
  double workspace = 0.0;  // as fractions of the kernel's least traffic
  double kept = 0.0;
  double alone = 1.0, cached = 1.0;  // as KernelEstimate's
};

struct FitAnswer {
  double y = 0.0;
  double error = 0.0;   // standard deviation of y
  bool inside = false;  // near enough to samples, and enough of them, to be called interpolated
  double workspace = 0.0;
  double kept = 0.0;
  double alone = 1.0, cached = 1.0;
};

class FamilyFit {
 public:
  explicit FamilyFit(std::vector<FitPoint> points);

  [[nodiscard]] FitAnswer at(const Site& query) const { return answer(query, neighbours(query, no_site)); }
  [[nodiscard]] std::size_t size() const { return points_.size(); }
  // Leave-one-out errors of y: relative errors of time, where they are small. 0 of fewer than three samples.
  [[nodiscard]] double median_error() const { return median_error_; }
  [[nodiscard]] double p90_error() const { return p90_error_; }

 private:
  [[nodiscard]] std::vector<Neighbour> neighbours(const Site& query, std::uint32_t skip) const;
  [[nodiscard]] FitAnswer answer(const Site& query, const std::vector<Neighbour>& near) const;

  NearestSites points_;
  std::vector<double> y_, workspace_, kept_, alone_, cached_;
  double median_error_ = 0.0, p90_error_ = 0.0;
  double error_ = 0.0;             // the standard deviation that they stand for
  double typical_distance_ = 0.0;  // to the nearest other sample
};

}  // namespace sibyl::interpolation

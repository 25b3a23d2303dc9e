// Measured collectives, ready for look-up: for each collective, algorithm and placement the times by size, made never
// to fall with size (pool-adjacent-violators on the logarithm of time, so noise cannot make more bytes faster).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "netmodel/curve.h"
#include "netmodel/network.h"

namespace sibyl {

struct MeasuredPlacement {
  GroupPlacement placement;
  std::vector<CurvePoint> points;  // sorted by size, times never falling, at least one
  double error = 0.0;              // spread, and how far the samples lie from the never-falling line
  std::map<double, double> in_turn = {};  // by bytes: CollectiveSample::in_turn, where it was timed

  // Straight in the logarithm of bytes; of longer messages as of the longest, of shorter ones than any 1.
  [[nodiscard]] double share_in_turn(double bytes) const;
};

class CollectiveTable {
 public:
  explicit CollectiveTable(std::span<const CollectiveSample> samples);

  [[nodiscard]] bool has(Collective collective, Algorithm algorithm) const;
  [[nodiscard]] std::span<const MeasuredPlacement> placements(Collective collective, Algorithm algorithm) const;
  // The placement itself, or the nearest one of the same class (inside one node, or across nodes); null if none.
  [[nodiscard]] const MeasuredPlacement* nearest(Collective collective, Algorithm algorithm,
                                                 const GroupPlacement& placement) const;
  // Of fewer and of more ranks, the nearest counts, inside one node and in as many groups; nothing unless both are
  // there.
  [[nodiscard]] std::optional<std::pair<const MeasuredPlacement*, const MeasuredPlacement*>> around(
      Collective collective, Algorithm algorithm, const GroupPlacement& placement) const;

 private:
  std::map<std::pair<Collective, Algorithm>, std::vector<MeasuredPlacement>> measured_;
};

// How unlike two placements are: the sum of the |log2| of the ratios of their counts. 0 = the same.
double distance(const GroupPlacement& a, const GroupPlacement& b);

// Times replaced by the nearest (least squares of the logarithm) that never fall.
void never_falling(std::vector<CurvePoint>& points);

// Straight between neighbours, as a message's time is in its bytes; beyond the first and the last point, theirs.
double interpolated(std::span<const CurvePoint> points, double bytes);

}  // namespace sibyl

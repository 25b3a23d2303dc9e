// What a calibration says of ranks that compute on their own and meet in the middle of a pass (probe_meetings): how much
// later than the mean of ranks the last one comes, and how much longer an exchange takes there than by itself. Derived
// in docs/models/step.md, The slowest rank.
//
// Ranks also drift apart over whole steps, by `late` of the longest window L. Steps of replicas, which meet in the end,
// hold that, and so does what is learnt from reference steps (composition.h). Meeting more often costs what is on top:
// of a window of c, late(c) - late(L) c / L, and nothing from L on. Between windows late goes by powers, before the
// first one as over the first octave, between the square root (what is independent from kernel to kernel) and the
// proportion (one delay now and then).
//
// Exchanges take longer where ranks begin them at other times: as much as was measured after the first window, less
// after less computing, in proportion to how far ranks have drifted apart.
#pragma once

#include <vector>

#include "base/units.h"
#include "calibration/calibration.h"

namespace sibyl {

class Meetings {
 public:
  Meetings() = default;  // nothing is known
  // The mean over series of equally many ranks, the most that there are; of windows that all of these have.
  explicit Meetings(const std::vector<MeetingSample>& samples);

  [[nodiscard]] bool known() const { return !windows_.empty(); }
  [[nodiscard]] int ranks() const { return ranks_; }
  // Of that many ranks that have computed so long since they last met.
  [[nodiscard]] Seconds late(Seconds computing) const;
  [[nodiscard]] Seconds longer(Seconds computing) const;

 private:
  [[nodiscard]] double drift(double computing) const;

  int ranks_ = 0;
  Seconds longer_{};
  std::vector<MeetingSample::Window> windows_;
};

}  // namespace sibyl

// How far the stages of a cut reach. The later a stage begins, the later it may end. So stages laid from the front,
// each as far as it goes, tell how late each of them can end, and stages laid from the back how early.
#pragma once

#include <cstddef>
#include <vector>

#include "oracle/plan/pipeline/cut_places.h"

namespace sibyl {

class CutBounds {
 public:
  // Both must outlive it.
  CutBounds(const CutPlaces& at, const StageLimits& memory, std::size_t stages)
      : at_(at), memory_(memory), stages_(stages), end_(at.count() - 1) {}

  // Places [first, last] where a stage may end.
  struct Ends {
    std::size_t first, last;
  };
  // By stage, in so much time each: as far as those up to it come, if some were empty, and where those after it come to
  // the program's end; none where there is no cut.
  [[nodiscard]] std::vector<Ends> ends(double limit) const;
  // Is there a cut whose stages end there, each done in so much time? O(places that they may end at).
  [[nodiscard]] bool reachable(double limit, const std::vector<Ends>& ends) const;
  // Do stages laid from the back, each as far as memory lets it go, come to the program's beginning? Where they do not
  // there is no cut, however slow.
  [[nodiscard]] bool come_to_beginning() const;
  // How far a stage goes; to its begin where there is no end within limits.
  [[nodiscard]] std::size_t furthest(std::size_t stage, std::size_t begin, double limit, double tolerance = 0) const;
  // The last place before which no more time than this goes by, looked for from `near` on.
  [[nodiscard]] std::size_t last_done_by(double time, std::size_t near) const;
  [[nodiscard]] bool trains(std::size_t begin, std::size_t end) const { return at_.trains[begin] < at_.trains[end]; }

 private:
  [[nodiscard]] std::size_t latest_begin(std::size_t stage, std::size_t end, double limit) const;
  [[nodiscard]] std::size_t nearest(std::size_t stage, std::size_t end, double limit) const;

  const CutPlaces& at_;
  const StageLimits& memory_;
  std::size_t stages_;
  std::size_t end_;  // the last place
};

}  // namespace sibyl

// Training steps follow one another, and no rank waits for all others between two of them: a pipeline's coordinate that
// has done its share of a step begins the next one. What a step takes then is how much later each comes round, which is
// less than from its first beginning to its last end where later coordinates end after the first one (zero-bubble's
// last gradients of weights, a last stage with a large update or many gradients): the first one's next passes forward
// run meanwhile. What it sends has to wait, as nobody asks for a message of a step that it has not begun. Where
// gradients are clipped by a norm over all stages, that norm is waited for, and little of this is left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace sibyl {

class SuccessiveSteps {
 public:
  explicit SuccessiveSteps(std::size_t coordinates) : begins_(coordinates, 0.0) {}

  // Seconds, by coordinate: when it has done the step before. The first one begins at 0, as no coordinate has anything
  // to do before that one has.
  [[nodiscard]] const std::vector<double>& begins() const { return begins_; }

  // After a step that ended so, by the same clock: is the next one worth following, as coordinates begin it otherwise?
  bool again(std::span<const double> ends) {
    constexpr int followed = 4;
    constexpr double least_move = 0.0005;  // of a step
    if (++steps_ == followed) return false;
    double moved = 0;
    for (std::size_t c = 0; c < begins_.size(); ++c) {
      const double begin = std::max(0.0, ends[c] - ends.front());
      moved = std::max(moved, std::abs(begin - begins_[c]));
      next_.push_back(begin);
    }
    const bool moves = moved > least_move * ends.front();
    if (moves) std::swap(begins_, next_);
    next_.clear();
    return moves;
  }

 private:
  std::vector<double> begins_, next_;
  int steps_ = 0;
};

}  // namespace sibyl

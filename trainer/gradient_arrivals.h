// When backward is done with a parameter's gradient. Autograd adds to it once for each graph that reads the parameter,
// and hooks run each time: segments that run again are a graph each (recompute.h), all other steps are one, and what is
// put off to a turn of its own is another (later_gradients.h).
#pragma once

#include <array>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl::trainer {

// By tensor: how many graphs give it a gradient in one backward turn of this kind.
std::vector<int> graphs_that_read(const Stage& stage, Turn::Kind kind);

class GradientArrivals {
 public:
  explicit GradientArrivals(const Stage& stage);

  // A backward turn of this kind is next.
  void begin(Turn::Kind kind) { to_come_ = graphs_[static_cast<std::size_t>(kind)]; }
  // A graph has added to the parameter's gradient: is it the turn's last one to do so?
  bool last(LocalTensorId parameter) { return --to_come_[parameter.index()] == 0; }

 private:
  std::array<std::vector<int>, 4> graphs_;  // by kind of turn, then by tensor
  std::vector<int> to_come_;                // by tensor
};

}  // namespace sibyl::trainer

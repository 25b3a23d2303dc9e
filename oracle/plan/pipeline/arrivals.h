// What comes to a pipeline's coordinate from its neighbours, in which order, and when it is asked for: room for a
// message is there before it is wanted, for the next one in each direction while the one before is worked on.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

// The tensors that a forward (Pass::forward) or a backward of a stage begins with.
std::vector<LocalTensorId> arriving_tensors(const Stage& stage, Pass pass);

// One direction of one coordinate, over one step.
class Arrivals {
 public:
  struct Message {
    int stage = 0, micro_batch = 0;  // that of the turn that wants it
    auto operator<=>(const Message&) const = default;
  };

  // `pass`: forward for what comes from the coordinate before, backward for what comes back from the one after.
  Arrivals(const Plan& plan, int coordinate, Pass pass) : Arrivals(plan.stages, plan.schedule, coordinate, pass) {}
  // Of another schedule of these stages; `turns` by coordinate.
  Arrivals(const std::vector<Stage>& stages, const std::vector<std::vector<Turn>>& turns, int coordinate, Pass pass);

  // Each returns the messages to ask for then, in the order in which the neighbour sends them: when the step begins,
  // before a message is waited for, and once it is taken.
  std::vector<Message> begin();
  std::vector<Message> before(const Message& wanted);
  std::vector<Message> after(const Message& taken);

 private:
  Message ask();

  std::vector<Message> coming_;  // in the order in which the neighbour sends
  std::size_t asked_ = 0;
  std::set<Message> pending_;  // asked for and not taken
};

}  // namespace sibyl

// Where to cut a program into stages: the slowest stage as fast as can be, within each device's memory.
//
// A stage costs what its steps cost (CutCosts::time: FLOPs of both passes unless the caller knows better) and, for what it
// sends to the next one and takes back, CutCosts::link. Of all ways within 2 % of the best, the one that sends the fewest
// bytes in all is taken: cuts lie where the program is narrow. Every stage has something to train or to pass a gradient
// through. Dynamic programming over (stages, positions); O(n^2) for n steps, most pairs cut short.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "oracle/plan/pipeline/schedules.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// The most micro-batches that each stage has taken forward and not yet wholly backward.
std::vector<int> in_flight(const Turns& turns, int stages);

// Where each stage after the first begins; within memory where that can be. Fails, code infeasible, where there are fewer
// steps to train than stages.
Result<std::vector<std::size_t>> balanced(const Stage& whole, const Strategy& strategy, const Turns& turns,
                                          const CutCosts& costs);

// The same by hand: the first step of the operation of each name, or of the first one whose name begins with it and a
// separator ("/h.6" means "/h.6/ln_1/…" too). They must stand in the program's order.
Result<std::vector<std::size_t>> by_name(const Graph& graph, const Stage& whole, const Strategy& strategy);

// Of weights, gradients, optimizer state and what is kept for backward: what a stage of these steps needs about.
// For choosing alone; oracle/memory walks the steps.
class MemoryEstimate {
 public:
  MemoryEstimate(const Stage& whole, OptimizerKind optimizer);
  [[nodiscard]] Bytes of(std::size_t begin, std::size_t end, int micro_batches) const {
    return fixed_[end] - fixed_[begin] + static_cast<double>(micro_batches) * (kept_[end] - kept_[begin]);
  }

 private:
  std::vector<Bytes> fixed_, kept_;  // sums over the steps before a position
};

}  // namespace sibyl

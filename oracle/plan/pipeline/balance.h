// Where to cut a program into stages: the slowest stage as fast as can be, within each device's memory.
//
// A stage costs what its steps cost (CutCosts::time: FLOPs of both passes unless the caller knows better) and, for what
// it sends to the next one and takes back, CutCosts::link. Of all ways within 2 % of the best, the one that sends the
// fewest bytes in all is taken: cuts lie where the program is narrow. Every stage has something to train or to pass a
// gradient through. The slowest stage's time is found to 0.1 % by bisection, each probe O(stages n) for n steps; then
// one dynamic programme over (stages, positions) finds the narrowest cut, O(stages n log n).
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/result.h"
#include "oracle/plan/pipeline/cut.h"
#include "oracle/plan/pipeline/schedules.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// The most micro-batches that each stage has taken forward and not yet wholly backward.
std::vector<int> in_flight(const Turns& turns, int stages);

// Of weights, gradients, optimizer state that lies on the device and what is kept for backward: what a stage of these
// steps needs about. For choosing alone; oracle/memory walks the steps.
class MemoryEstimate {
 public:
  // `strategy`: any with this optimizer, and its state in this place. `like`: as of Blocks.
  MemoryEstimate(const Stage& whole, const Strategy& strategy, const std::vector<std::size_t>& like);
  [[nodiscard]] Bytes of(std::size_t begin, std::size_t end, int micro_batches) const {
    return fixed_[end] - fixed_[begin] + static_cast<double>(micro_batches) * (kept_[end] - kept_[begin]);
  }

 private:
  std::vector<Bytes> fixed_, kept_;  // sums over the steps before a position
};

// What cutting one program looks at, whatever the number of stages: made once, asked for many cuts.
class CutTable {
 public:
  // `crossing`: the program's. `strategy`: as of MemoryEstimate. `costs.begins` is not looked at. `like`: by step, an
  // earlier one that runs the same, or itself; empty where that is not known.
  CutTable(const Stage& whole, const Crossing& crossing, const Strategy& strategy, const CutCosts& costs,
           const std::vector<std::size_t>& like = {});

  // Where each stage after the first begins; empty where there is no such cut. `in_flight`: micro-batches, by stage;
  // `capacity`: of one stage, 0 for no limit. The cut without a limit is kept: where it is within one it is the cut
  // with it.
  [[nodiscard]] std::vector<std::size_t> cut(const std::vector<int>& in_flight, Bytes capacity);
  [[nodiscard]] int trained_steps() const { return trains_.back(); }

 private:
  class Search;
  [[nodiscard]] bool fits(const std::vector<std::size_t>& begins, const std::vector<int>& in_flight,
                          Bytes capacity) const;
  [[nodiscard]] double cost(std::size_t begin, std::size_t end) const { return time_[end] - time_[begin] + link_[end]; }

  std::size_t steps_;
  std::vector<bool> begins_;  // by position: may a stage begin there
  std::vector<Bytes> sent_;   // by position: crosses it, both ways
  MemoryEstimate memory_;
  std::vector<double> time_;                                   // sums over the steps before a position
  std::vector<int> trains_;                                    // the same of steps with a backward
  std::vector<double> link_;                                   // by position
  std::map<std::size_t, std::vector<std::size_t>> unlimited_;  // by stages
};

// Fails, code infeasible, where there are fewer steps to train than stages: before their schedule is made, which may be
// long.
Result<void> check_stages(const Stage& whole, const Strategy& strategy);

// Of a strategy's stages: within memory where that can be. Fails, code infeasible, where there are fewer steps to train
// than stages.
Result<std::vector<std::size_t>> balanced(CutTable& table, const Strategy& strategy, const std::vector<int>& in_flight,
                                          Bytes memory);
Result<std::vector<std::size_t>> balanced(const Stage& whole, const Strategy& strategy, const Turns& turns,
                                          const CutCosts& costs);

// The same by hand: the first step of the operation of each name, or of the first one whose name begins with it and a
// separator ("/h.6" means "/h.6/ln_1/…" too). They must stand in the program's order.
Result<std::vector<std::size_t>> by_name(const Graph& graph, const Stage& whole, const Strategy& strategy);

}  // namespace sibyl

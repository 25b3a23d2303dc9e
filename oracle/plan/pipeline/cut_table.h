// Where to cut a program into stages: the slowest stage as fast as can be, within each device's memory.
//
// A stage costs what its steps cost (CutCosts::time: FLOPs of both passes unless the caller knows better) and, for what
// it sends to the next one and takes back, CutCosts::link. Of all ways within 2 % of the best, the one that sends the
// fewest bytes in all is taken: cuts lie where the program is narrow. Every stage has something to train or to pass a
// gradient through.
//
// The slowest stage's time is found to 0.1 % by bisection. Whether stages can be done in so much time is seen by laying
// each as far as it goes, O(stages log n) for n steps: the later a stage ends, the more the next one can hold. Laid so
// over the narrowest places alone they are the narrowest cut, where there is such a one. What these two do not decide,
// a dynamic programme over (stages, places) does, O(stages n log n).
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "oracle/plan/pipeline/cut.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// Does a step's backward do anything?
bool trains(const Stage& whole, const Step& step);

// Of weights, gradients, optimizer state that lies on the device and what is kept for backward: what a stage of these
// steps needs about. For choosing alone; oracle/memory walks the steps.
class MemoryEstimate {
 public:
  // `strategy`: any with this optimizer, and its state in this place. `like`: as of Blocks. What is kept depends on the
  // backend: fused attention keeps no scores.
  MemoryEstimate(const Stage& whole, const Strategy& strategy, Backend backend, const std::vector<std::size_t>& like);
  [[nodiscard]] Bytes of(std::size_t begin, std::size_t end, int micro_batches) const {
    return fixed_[end] - fixed_[begin] + static_cast<double>(micro_batches) * (kept_[end] - kept_[begin]);
  }
  // Of stages that begin and end at these positions: asked for by their indices.
  [[nodiscard]] MemoryEstimate at(const std::vector<std::size_t>& positions) const;

 private:
  MemoryEstimate() = default;

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
  [[nodiscard]] std::size_t places() const { return position_.size(); }
  [[nodiscard]] double cost(std::size_t begin, std::size_t end) const { return time_[end] - time_[begin] + link_[end]; }
  [[nodiscard]] bool fits(const std::vector<std::size_t>& begins, const std::vector<int>& in_flight,
                          Bytes capacity) const;

  // By place, where a stage may begin, and at last the program's end:
  std::vector<std::size_t> position_;
  MemoryEstimate memory_;
  std::vector<double> sent_;  // bytes that cross it, both ways
  std::vector<double> time_;  // of the steps before
  std::vector<int> trains_;   // of these, such with a backward
  std::vector<double> link_;
  std::vector<double> done_;                                   // the least of time and link of the places from there on
  double longest_link_ = 0;                                    // of all positions
  std::map<std::size_t, std::vector<std::size_t>> unlimited_;  // places, by stages
};

}  // namespace sibyl

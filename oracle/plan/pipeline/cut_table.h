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
#include "oracle/plan/pipeline/places.h"
#include "oracle/plan/pipeline/stage_memory.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// Does a step's backward do anything?
bool trains(const Stage& whole, const Step& step);

// Within what stages are to stay.
struct MemoryLimit {
  const StageMemory& memory;
  const std::vector<OnTheWay>& micro_batches;  // by stage
  std::size_t devices = 1;                     // stage i lies on device i modulo this
  Bytes each;                                  // of which each has so much
};

// What cutting one program looks at, whatever the number of stages: made once, asked for many cuts.
class CutTable {
 public:
  // `places`: the program's, which must outlive this; `crossing`: likewise the program's. `costs.begins` is not looked
  // at. `like`: by step, an earlier one that runs the same, or itself; empty where that is not known.
  CutTable(const Stage& whole, const Places& places, const Crossing& crossing, const CutCosts& costs,
           const std::vector<std::size_t>& like = {});

  // Where each stage after the first begins; empty where there is no such cut. The cut without a limit is kept: where
  // it is within one it is the cut with it. Of a device with several stages that have to stay within it together, each
  // has an equal share where another cut is to be found.
  [[nodiscard]] std::vector<std::size_t> cut(std::size_t stages, const MemoryLimit* limit = nullptr);
  // May there be a cut within the limit, however slow? False where there is none by far; it takes O(stages log n).
  [[nodiscard]] bool possible(std::size_t stages, const MemoryLimit& limit) const;
  [[nodiscard]] int trained_steps() const { return trains_.back(); }

 private:
  class Search;
  [[nodiscard]] std::size_t places() const { return time_.size(); }
  [[nodiscard]] double cost(std::size_t begin, std::size_t end) const { return time_[end] - time_[begin] + link_[end]; }
  [[nodiscard]] bool fits(const std::vector<std::size_t>& begins, const MemoryLimit& limit) const;

  const Places& places_;
  // By place, and at last the program's end:
  std::vector<double> sent_;  // bytes that cross it, both ways
  std::vector<double> time_;  // of the steps before
  std::vector<int> trains_;   // of these, such with a backward
  std::vector<std::size_t> begins_;  // how many places before it something trains from, to there
  std::vector<double> link_;
  std::vector<double> done_;                                   // the least of time and link of the places from there on
  double longest_link_ = 0;                                    // of all positions
  std::map<std::size_t, std::vector<std::size_t>> unlimited_;  // places, by stages
};

}  // namespace sibyl

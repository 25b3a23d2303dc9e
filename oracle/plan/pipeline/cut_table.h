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
// dynamic programmes over (stages, places) do: whether there is a cut (cut_bounds.h), and which is the narrowest
// (narrowest_cut.h).
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include "oracle/plan/pipeline/cut.h"
#include "oracle/plan/pipeline/cut_places.h"
#include "oracle/plan/pipeline/narrowest_cut.h"
#include "oracle/plan/pipeline/places.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// Does a step's backward do anything?
bool trains(const Stage& whole, const Step& step);

// What cutting one program looks at, whatever the number of stages: made once, asked for many cuts.
class CutTable {
 public:
  // `places`: the program's, which must outlive this; `crossing`: likewise the program's. `costs.begins` is not looked
  // at. `like`: by step, an earlier one that runs the same, or itself; empty where that is not known.
  CutTable(const Stage& whole, const Places& places, const Crossing& crossing, const CutCosts& costs,
           const std::vector<std::size_t>& like = {});
  CutTable(const CutTable&) = delete;
  CutTable& operator=(const CutTable&) = delete;

  // Where each stage after the first begins; empty where there is no such cut. The cut without a limit is kept: where
  // it is within one it is the cut with it. Of a device with several stages that have to stay within it together, each
  // has an equal share where another cut is to be found.
  [[nodiscard]] std::vector<std::size_t> cut(std::size_t stages, const MemoryLimit* limit = nullptr);
  // May there be a cut within the limit, however slow? False where there is none by far; it takes O(stages log n).
  [[nodiscard]] bool possible(std::size_t stages, const MemoryLimit& limit);
  [[nodiscard]] int trained_steps() const { return at_.trains.back(); }

 private:
  class Search;
  // The slowest stage's time: no cut is done in the first, and one is in the second, 0.1 % more; and where its stages
  // after the first begin.
  struct Found {
    double too_fast = 0, done = std::numeric_limits<double>::infinity();
    std::vector<std::size_t> begins = {};
  };
  const Found& unlimited(std::size_t stages);
  [[nodiscard]] bool fits(const std::vector<std::size_t>& begins, const MemoryLimit& limit) const;

  const Places& places_;
  CutPlaces at_;
  NarrowestCut narrowest_{at_};
  std::map<std::size_t, Found> unlimited_;  // by stages
};

}  // namespace sibyl

// What a step takes at the least, wherever its program is cut into stages: known before a cut is sought, a stage worked
// out or a schedule walked, and of a program that is still folded, so that a search need do none of these for what is
// too slow in any case.
//
// Of m micro-batches a coordinate of a pipeline runs its share of each. Before its first pass forward those before it
// have run theirs, and after its last pass backward they run theirs. So with w_c its work on a micro-batch, seconds,
//   T >= w_0 + ... + w_(c-1) + m w_c   for each c
// where it has one stage, whose backward is one pass; else T >= m w_s for each stage s, and m / p times all work. Where
// backward is taken in two parts, those before it wait for the first part alone: the same holds of forward and that.
//
// No cut parts an operation. So it is tried whether T is possible: stages are laid from the back, each as far as T lets
// it go. The more those behind a stage hold, the more it may: where these do not come to the program's beginning, none
// do. T is found so to 2 %, from below.
//
// Messages between stages and replicas, exchanges that may be hidden, what runs again, what is made again for a stage,
// updates and waiting for the slowest rank are left out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "oracle/closed/program_table.h"
#include "oracle/cost/kernel_prices.h"
#include "oracle/plan/folding.h"
#include "oracle/plan/plan.h"

namespace sibyl::closed {

// What ranks run on a micro-batch, made of a folding's graph where that can be unfolded again.
struct FoldedProgram {
  Stage steps;
  Segment again = {};     // of which these stand for so many layers more
  std::size_t times = 0;  // 0: it is whole
  PricedRows rows = {};   // of `steps`, as far as anyone has asked

  // `folding`: the graph's, or null.
  static Result<FoldedProgram> make(const Graph& graph, const Folding* folding, const Strategy& strategy);
};

// Not for several threads at once.
class LeastTime {
 public:
  // All must outlive it. `strategy`: any of those whose form_key() is one.
  LeastTime(FoldedProgram& program, const Strategy& strategy, KernelPrices& kernels)
      : program_(program), strategy_(strategy), kernels_(kernels) {}

  Seconds of(const Strategy& strategy);

 private:
  // Of a micro-batch's passes, seconds.
  struct Work {
    std::vector<double> before;      // by place where a stage may begin, and the program's end
    std::vector<double> waited_for;  // of these what other stages wait for: all but the second part of backward
    double whole = 0;                // what is left to no place is in it as well
  };
  const Work& work(bool split);
  [[nodiscard]] Work add_up(bool split);
  double longest_stage(int stages, bool split);
  double of_stages(const Strategy& strategy);

  FoldedProgram& program_;
  const Strategy& strategy_;
  KernelPrices& kernels_;
  std::array<std::optional<Work>, 2> work_;         // by whether backward is taken in two parts
  std::map<std::pair<int, bool>, double> longest_;  // by stages
  std::map<std::tuple<PipelineSchedule, int, int, std::int64_t>, double> known_;  // of pipelines
};

}  // namespace sibyl::closed

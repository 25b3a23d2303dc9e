// How much else a step touches between two uses of the same memory, and for how long, kernel by kernel: by that one
// knows what a cache still holds when a kernel wants it.
//
// Memory that is given back serves the next who wants as much, the last given first, as the heap of a steady step does;
// what stays from step to step lies where it lay. A step is walked twice (StepWalk): the first time everything is new.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.h"
#include "oracle/cost/kernels.h"
#include "oracle/memory/recorder.h"
#include "oracle/plan/plan.h"
#include "profiler/reuse_curve.h"

namespace sibyl {

class Reuse {
 public:
  using Address = std::size_t;

  Address take(double bytes);
  void give(Address address);
  Address fixed(const MemoryOwner& owner, double bytes);  // the same each time

  // What is touched from here on is touched by a kernel of the stage, which takes so long; by none: by what no kernel
  // of a pass does.
  void kernel(const Stage* stage, std::optional<StageKernels::Index> key, Seconds time = {});
  // What ran right before has touched: nothing of it; it, here and where kernels are timed; it where they are timed.
  enum class Warm { no, always, when_timed };
  // Once a kernel; what it touches again counts no more.
  void touch(Address address, Warm warm = Warm::no);
  // The step is over: what is still taken is given back, and what was touched so far only tells what comes after it.
  void again();

  struct Touch {
    Bytes bytes;
    ReuseCurve::Since last;  // since it was touched last
    Bytes apart;             // between two touches of it in the mean of a step, counting all that is touched each time
    bool warm_when_timed = false;
  };
  struct Run {
    const Stage* stage = nullptr;
    StageKernels::Index key = 0;
    std::vector<Touch> touches;  // but for those that are always warm
  };
  // Of the last step.
  [[nodiscard]] std::vector<Run> runs() const;
  [[nodiscard]] Bytes step() const;                                             // all that it touches, each byte once
  [[nodiscard]] Seconds time() const { return now_ - began_[step_begun_].at; }  // that its kernels and updates take

 private:
  struct Piece {
    double bytes = 0;
    std::size_t touched_by = 0;  // 1 + the run
    bool taken = false;
  };
  struct Began {
    const Stage* stage = nullptr;
    std::optional<StageKernels::Index> key;
    std::size_t first = 0;  // of touches_
    Seconds at;
  };
  struct Touched {
    Address address = 0;
    Warm warm = Warm::no;
  };

  [[nodiscard]] std::vector<Bytes> apart_in_a_step() const;  // of each piece

  std::vector<Piece> pieces_;
  std::unordered_map<double, std::vector<Address>> free_;  // by size
  std::map<std::pair<MemoryOwner, double>, Address> fixed_;
  std::vector<Began> began_{{}};
  std::vector<Touched> touches_;
  std::size_t step_begun_ = 0;  // of began_
  Seconds now_;                 // by the times of kernels and updates alone
};

}  // namespace sibyl

// How much else a step touches between two uses of the same memory, and for how long, kernel by kernel: by that one
// knows what a cache still holds when a kernel wants it.
//
// What a step takes and gives back lies where a heap lays it (heap.h), so that a part of it may have been touched just
// now and the rest long ago; what stays from step to step lies where it lay. A step is walked twice (StepWalk): the
// first time everything is new.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/units.h"
#include "oracle/cost/kernels.h"
#include "oracle/memory/heap.h"
#include "oracle/memory/recorder.h"
#include "oracle/plan/plan.h"
#include "profiler/reuse_curve.h"

namespace sibyl {

class Reuse {
 public:
  struct Memory {
    Heap::Address begin = 0, end = 0;
    friend bool operator==(const Memory&, const Memory&) = default;
  };

  Memory take(double bytes);
  void give(const Memory& memory);
  Memory fixed(const MemoryOwner& owner, double bytes);  // the same each time

  // What is touched from here on is touched by a kernel of the stage, which takes so long; by none: by what no kernel
  // of a pass does.
  void kernel(const Stage* stage, std::optional<StageKernels::Index> key, Seconds time = {});
  // What ran right before has touched: nothing of it; it, here and where kernels are timed; it where they are timed.
  enum class Warm { no, always, when_timed };
  // Once a kernel; what it touches again counts no more.
  void touch(const Memory& memory, Warm warm = Warm::no);
  // The step is over: what is still taken is given back, and what was touched so far only tells what comes after it.
  void again();

  struct Touch {  // of memory of one past
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
  static constexpr Heap::Address fixed_begin = Heap::Address{1} << 62U;  // no heap grows so far

  struct Began {
    const Stage* stage = nullptr;
    std::optional<StageKernels::Index> key;
    std::size_t first = 0;  // of touches_
    Seconds at;
  };
  struct Touched {
    Memory memory;
    Warm warm = Warm::no;
  };

  Heap heap_;
  std::map<std::pair<MemoryOwner, double>, Memory> fixed_;
  Heap::Address fixed_end_ = fixed_begin;
  std::vector<Began> began_{{}};
  std::vector<Touched> touches_;
  std::set<Heap::Address> touched_by_kernel_;  // the one that began last
  std::size_t step_begun_ = 0;  // of began_
  Seconds now_;                 // by the times of kernels and updates alone
};

}  // namespace sibyl

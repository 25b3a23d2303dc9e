// What a cut into stages looks at, of all places of a program (places.h): their times and bytes, and whether a stage of
// them is within limits.
#pragma once

#include <cstddef>
#include <vector>

#include "oracle/plan/pipeline/stage_memory.h"

namespace sibyl {

// Within what stages are to stay.
struct MemoryLimit {
  const StageMemory& memory;
  const std::vector<OnTheWay>& micro_batches;  // by stage
  std::size_t devices = 1;                     // stage i lies on device i modulo this
  Bytes each;                                  // of which each has so much
};

// By place, and at last the program's end.
struct CutPlaces {
  std::vector<double> sent;         // bytes that cross it, both ways
  std::vector<double> time;         // of the steps before
  std::vector<int> trains;          // of these, such with a backward
  std::vector<std::size_t> begins;  // how many places before it something trains from, to there
  std::vector<double> link;
  std::vector<double> done;  // the least of time and link of the places from there on
  double longest_link = 0;   // of all positions

  [[nodiscard]] std::size_t count() const { return time.size(); }
  [[nodiscard]] double cost(std::size_t first, std::size_t end) const { return time[end] - time[first] + link[end]; }
};

// What each stage may hold. A device's stages fill it together: each has a share of it, and as many micro-batches as
// they have on average.
class StageLimits {
 public:
  // `limit`: null where there is none; else it must outlive this.
  StageLimits(std::size_t stages, const MemoryLimit* limit) : limit_(limit) {
    if (!limit) return;
    const std::size_t devices = limit->devices;
    share_ = 1.0 / static_cast<double>(stages / devices);
    micro_batches_.assign(stages, {0, 0});
    for (std::size_t s = 0; s < stages; ++s)
      for (std::size_t other = s % devices; other < stages; other += devices) {
        micro_batches_[s].all += limit->micro_batches[other].all * share_;
        micro_batches_[s].later += limit->micro_batches[other].later * share_;
      }
  }

  [[nodiscard]] bool any() const { return limit_ != nullptr; }
  [[nodiscard]] bool holds(std::size_t stage, std::size_t begin, std::size_t end, double tolerance = 0) const {
    if (!limit_) return true;
    const double most = limit_->each.value() * share_ * (1 + tolerance);
    const double resting = limit_->memory.resting(begin, end, micro_batches_[stage]);
    return resting <= most && resting + limit_->memory.passing(begin, end) * share_ <= most;
  }
  // Does each of the two hold what the other does? Where there is a limit.
  [[nodiscard]] bool alike(std::size_t stage, std::size_t other) const {
    return micro_batches_[stage] == micro_batches_[other];
  }

 private:
  const MemoryLimit* limit_;
  std::vector<OnTheWay> micro_batches_;  // by stage
  double share_ = 1;                     // of a device, that a stage has
};

}  // namespace sibyl

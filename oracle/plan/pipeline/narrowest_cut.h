// Of all cuts within limits the one that sends the fewest bytes; of equal ones that of the latest begins.
//
// With sent(e) the bytes that cross place e, the least that stages 0 to s send, the last of which ends at e, is
//   least(s, e) = sent(e) + min { least(s - 1, b) : low(s, e) <= b < high(e) },
// low(s, e) being the first place from which the stage is done in time, and has the memory, and high(e) the last from
// which it trains something. Both rise with e but for what is sent at e, so that they are found from one end to the
// next, time's once for all stages. The least of a row of places is that of two that overlap, each as long as a power
// of two, of all of which it is worked out first: mostly stages are a few places long, and what is done for each of the
// many ends of many stages decides how long it takes. Where a stage begins is asked only of the ends that are the
// cut's: bytes are whole numbers, so that it is the latest place that leads to the same sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "oracle/plan/pipeline/cut_bounds.h"

namespace sibyl {

class NarrowestCut {
 public:
  // `at` must outlive it. What it works in is kept for the next cut.
  explicit NarrowestCut(const CutPlaces& at) : at_(at) {}

  // Places where stages after the first begin, each done in `limit`; empty where no cut is within limits. `ends`: by
  // stage, where it may end.
  std::vector<std::size_t> find(const StageLimits& memory, double limit, const std::vector<CutBounds::Ends>& ends);

 private:
  using Ends = CutBounds::Ends;
  using Place = std::uint32_t;
  // Memory that is not cleared.
  class Values {
   public:
    double* room(std::size_t count) {
      if (count > count_) values_ = std::make_unique_for_overwrite<double[]>(count_ = count);
      return values_.get();
    }
    [[nodiscard]] const double* values() const { return values_.get(); }

   private:
    std::unique_ptr<double[]> values_;
    std::size_t count_ = 0;
  };
  // By end: of which two rows of places it takes the least; indices of `levels_`.
  struct Rows {
    std::vector<Place> first, second;
  };

  void find_lows(double limit, const std::vector<Ends>& ends);
  void set_rows(Rows& rows, std::size_t end, Place low) const;
  void heed_memory(const StageLimits& memory, std::size_t stage, const Ends& ends);
  void find_least(const Ends& reached, const double* before, const Ends& ends);
  [[nodiscard]] std::vector<std::size_t> begins_of(const std::vector<Ends>& ends) const;
  [[nodiscard]] Place high(std::size_t end) const { return static_cast<Place>(at_.begins[end]); }

  const CutPlaces& at_;
  std::vector<Place> low_, width_;   // by end: of its begins, as time has them
  Rows in_time_, in_both_;           // as time has them, and as memory has them, too
  Place enough_from_ = 0;            // of the last end that was looked at: before it memory is not enough
  std::size_t known_last_ = 0;       // as far as in_both_ is good, if the next stage holds as much
  std::vector<std::size_t> row_at_;  // by stage: where its row begins
  Values least_, levels_;            // by stage and end; by length of a row of places, and the first of it
  std::size_t none_ = 0;             // of levels_: a row without places
};

}  // namespace sibyl

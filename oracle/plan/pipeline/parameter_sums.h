// What a pipeline's stage holds of its parameters and for them throughout a step, of all stages of a program: sums over
// its places.
//
// Parameters of one element type, whose gradients are summed over the same axes, take the same for each byte: weights,
// gradients, optimizer state, buckets, of which ranks may hold parts (plan/zero.h). What several operations use lies on
// each stage that has one of them, whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "oracle/plan/pipeline/places.h"
#include "oracle/plan/pipeline/range_maximum.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// A strategy's, bytes by place.
struct HeldState {
  std::vector<double> sums;  // before a place
  std::vector<WantedBySeveral> shared;
  // Buckets of a size take turns in so many buffers; units of parameters are gathered two at a time.
  double buffers = 0;
  double smallest_bucket = 0;      // unless the stage has less
  std::vector<double> parameters;  // before a place: such whose gradients are exchanged
  RangeMaximum buckets, gathered;  // by place; empty without buffers, without units

  [[nodiscard]] double of(std::size_t begin, std::size_t end) const {
    double bytes = sums[end] - sums[begin];
    for (const WantedBySeveral& wanted : shared)
      if (wanted.in(begin, end)) bytes += wanted.bytes;
    if (buffers > 0) {
      const double largest = std::max(smallest_bucket, buckets.of(begin, end));
      bytes += buffers * std::min(parameters[end] - parameters[begin], largest);
    }
    return bytes;
  }
  // While a pass runs, beside that.
  [[nodiscard]] double passing(std::size_t begin, std::size_t end) const {
    return gathered.empty() ? 0 : std::min(parameters[end] - parameters[begin], gathered.of(begin, end));
  }
};

class ParameterSums {
 public:
  // `whole` must outlive it.
  ParameterSums(const Stage& whole, const Places& places);
  // `like`: as of BackwardMemory.
  [[nodiscard]] HeldState held(const Strategy& strategy, const std::vector<std::size_t>& like);
  // The same without buffers for buckets, and without what is gathered: whatever the size of buckets, no more.
  [[nodiscard]] HeldState without_buckets(const Strategy& strategy) const;

 private:
  struct Kind {
    LocalTensor first;          // of those alike
    std::vector<double> bytes;  // by place, of what is used there alone
  };
  struct Shared {
    LocalTensor tensor;
    WantedBySeveral wanted;
  };
  void add(const LocalTensor& tensor, const std::vector<std::size_t>& places, std::size_t count);
  struct Buffers {
    double for_a_byte = 0;  // of a bucket
    bool sharded = false;   // does any kind share its state out?
  };
  [[nodiscard]] HeldState sums(const Strategy& strategy, Buffers& buffers) const;
  void add_units(HeldState& held, const Strategy& strategy, const std::vector<std::size_t>& like);

  const Stage& whole_;
  const Places& places_;
  std::vector<Kind> kinds_;
  std::vector<Shared> shared_;
  std::vector<double> largest_;                 // by place: of one parameter
  std::optional<std::vector<Segment>> blocks_;  // once asked
};

}  // namespace sibyl

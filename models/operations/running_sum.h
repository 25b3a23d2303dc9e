// A running sum along one axis (ONNX CumSum): RoBERTa numbers its tokens so.
#pragma once

#include "models/operations/own_file.h"

namespace sibyl {

// x -> y of the same shape: y[i] = x[0] + … + x[i] along `axis`; from the other end where `reverse`; without x[i]
// itself where `exclusive`: it is subtracted again, so that of infinite elements there is nothing to tell.
struct RunningSum {
  static constexpr std::string_view name = "running_sum";
  static constexpr bool own_file = true, in_full = true;
  std::int64_t axis = 0;
  bool reverse = false, exclusive = false;
  static void fields(auto& self, auto&& visit) {
    visit("axis", self.axis), visit("reverse", self.reverse), visit("exclusive", self.exclusive);
  }
  bool operator==(const RunningSum&) const = default;

  // One addition an element. From the other end: turned before and after, each a copy; without itself: subtracted. The
  // gradient is summed from the other end, the same way round, and nothing is kept for it.
  [[nodiscard]] TrainingRule training(const auto& c) const {
    const double x = c.in(0), bytes = x * c.element();
    const Work sum = rules::work(x, bytes, bytes), turns = rules::work(0, 2 * bytes, 2 * bytes);
    const Work subtraction = rules::work(x, 2 * bytes, bytes);
    TrainingRule r;
    r.forward = sum + (reverse ? turns : Work{}) + (exclusive ? subtraction : Work{});
    r.backward = r.forward + turns + (exclusive ? rules::work(x, bytes, bytes) : Work{});
    return r;
  }

  [[nodiscard]] bool independent_along(std::size_t dim) const { return static_cast<std::int64_t>(dim) != axis; }

  [[nodiscard]] auto run(const auto& in) const {
    const auto x = reverse ? in[0].flip({axis}) : in[0];
    auto sums = x.cumsum(axis, x.scalar_type());
    if (exclusive) sums = sums - x;
    return reverse ? sums.flip({axis}) : sums;
  }

  static constexpr std::string_view onnx_name = "CumSum";
  static constexpr std::size_t operands = 1;
  static Result<RunningSum> from(const auto& node) {
    SIBYL_TRY(const auto axes, node.listed("axis", 1));
    if (!axes || axes->size() != 1) return fail("it has no axis");
    SIBYL_TRY(const std::size_t axis, node.front_axis(axes->front()));
    return RunningSum{static_cast<std::int64_t>(axis), node.integer("reverse", 0) != 0,
                      node.integer("exclusive", 0) != 0};
  }
};

}  // namespace sibyl

// Where a pipeline's stages may begin: places, of which each but the last, the program's end, is an operation's steps
// with the exchanges before it. A stage is places [begin, end).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

class Places {
 public:
  explicit Places(const Stage& whole);

  [[nodiscard]] std::size_t count() const { return position_.size() - 1; }  // without the end
  [[nodiscard]] std::size_t position(std::size_t place) const { return position_[place]; }
  [[nodiscard]] const std::vector<std::size_t>& positions() const { return position_; }
  [[nodiscard]] std::size_t of_step(std::size_t step) const { return of_step_[step]; }

 private:
  std::vector<std::size_t> position_;   // by place: its first step
  std::vector<std::uint32_t> of_step_;  // by step: its place
};

// What stages hold once each, however many of their places want it. Cuts ask again and again: which place is the next
// is known beforehand.
class WantedBySeveral {
 public:
  // `places`: ascending, each once; of `count`.
  WantedBySeveral(const std::vector<std::size_t>& places, std::size_t count, double bytes);
  [[nodiscard]] bool in(std::size_t begin, std::size_t end) const { return next_[begin] < end; }

  double bytes = 0;

 private:
  std::vector<std::uint32_t> next_;  // by place: the first from there on that wants it, or the end
};

// By place what is before it, of what is at each.
std::vector<double> sums_before(const std::vector<double>& at);

}  // namespace sibyl

// Of several things the one that happens first: told in no time, changed in O(log of how many there are).
#pragma once

#include <bit>
#include <cstddef>
#include <limits>
#include <vector>

namespace sibyl {

class Earliest {
 public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  explicit Earliest(std::size_t count) : half_(std::bit_ceil(count)), times_(half_, never), first_(2 * half_) {
    for (std::size_t i = 0; i < half_; ++i) first_[half_ + i] = i;
    for (std::size_t k = half_ - 1; k > 0; --k) first_[k] = first_[2 * k];
  }

  void set(std::size_t i, double time) {
    times_[i] = time;
    for (std::size_t k = (half_ + i) / 2; k > 0; k /= 2) {
      const std::size_t a = first_[2 * k], b = first_[2 * k + 1];
      first_[k] = times_[b] < times_[a] ? b : a;
    }
  }
  [[nodiscard]] double of(std::size_t i) const { return times_[i]; }
  // Of several at once the first one; with nothing to come any, and the time is never.
  [[nodiscard]] std::size_t which() const { return first_[1]; }
  [[nodiscard]] double time() const { return times_[which()]; }

 private:
  std::size_t half_;
  std::vector<double> times_;
  std::vector<std::size_t> first_;  // of a binary tree's nodes, the root at 1: the first of what is below
};

}  // namespace sibyl

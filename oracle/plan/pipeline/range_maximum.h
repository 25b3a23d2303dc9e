// The greatest of any row of values, in a time that does not depend on how many: of every row whose length is a power
// of two it is known beforehand.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace sibyl {

class RangeMaximum {
 public:
  RangeMaximum() = default;
  explicit RangeMaximum(std::vector<double> values) {
    levels_.push_back(std::move(values));
    for (std::size_t length = 1; 2 * length <= levels_[0].size(); length *= 2) {
      const std::vector<double>& below = levels_.back();
      std::vector<double> own(levels_[0].size() - 2 * length + 1);
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = std::max(below[i], below[i + length]);
      levels_.push_back(std::move(own));
    }
  }
  [[nodiscard]] bool empty() const { return levels_.empty(); }
  // Of values [begin, end), at least one.
  [[nodiscard]] double of(std::size_t begin, std::size_t end) const {
    const auto level = static_cast<std::size_t>(std::bit_width(end - begin) - 1);
    return std::max(levels_[level][begin], levels_[level][end - (std::size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<double>> levels_;
};

}  // namespace sibyl

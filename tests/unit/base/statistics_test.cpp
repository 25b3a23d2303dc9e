#include "base/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace sibyl {
namespace {

TEST(Statistics, MedianAndSpreadByHand) {
  const std::vector<double> values{5, 1, 3, 2, 100};
  EXPECT_EQ(median(values), 3);
  // |x - 3| = 2 2 0 1 97: their median is 2.
  EXPECT_DOUBLE_EQ(relative_spread(values, 3), 1.4826 * 2 / 3);
  EXPECT_EQ(median(std::vector<double>{4, 2}), 3);
}

TEST(Statistics, MeanLeavesOutWhatIsUnusual) {
  // The median is 3, so 6 still counts and 6.1 does not: (1 + 2 + 3 + 6) / 4.
  EXPECT_DOUBLE_EQ(mean_of_usual(std::vector<double>{2, 1, 6, 3, 6.1}), 3);
  EXPECT_DOUBLE_EQ(mean_of_usual(std::vector<double>{4, 2}), 3);
  EXPECT_DOUBLE_EQ(mean_of_usual(std::vector<double>{7}), 7);
}

TEST(Statistics, NothingHasNone) {
  EXPECT_EQ(mean_of_usual({}), 0);
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(relative_spread({}, 3), 0);
  EXPECT_EQ(relative_spread(std::vector<double>{-1, 0, 1}, 0), 0);
}

}  // namespace
}  // namespace sibyl

#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
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
  EXPECT_DOUBLE_EQ(mean_of_usual(std::vector<double>{2, 1, 6, 3, 6.1}, 1.5), 2) << "up to 4.5";
}

// 10 is known to 1 and to 2: weights 1 and 1/4, an error of 1 / sqrt(1.25).
TEST(Statistics, PoolsWhatAgreesByHowWellItIsKnown) {
  const Pooled same = pooled(std::vector<Known>{{10, 1}, {10, 2}});
  EXPECT_DOUBLE_EQ(same.mean, 10);
  EXPECT_DOUBLE_EQ(same.error, 1 / std::sqrt(1.25));
  EXPECT_DOUBLE_EQ(same.weights[0], 0.8);
  EXPECT_DOUBLE_EQ(same.weights[1], 0.2);
  const Pooled one = pooled(std::vector<Known>{{7, 0.5}});
  EXPECT_DOUBLE_EQ(one.mean, 7);
  EXPECT_DOUBLE_EQ(one.error, 0.5);
}

// 1 and 3, each known to 1: both weigh 1, squares around 2 add up to 2 where 1 is foretold, over 2 - 2 / 2 = 1: a
// variance of 1 is the thing's own. Each is then known to sqrt(2), the mean to 1. Of 0 and 12, known to 1 and 3:
// weights 1 and 1/9, mean 1.2, squares 1.44 + 12.96 = 14.4, scale 10/9 - (82/81) / (10/9) = 0.2, variance
// 13.4 / 0.2 = 67; weights 1/68 and 1/76, mean 12 * 68 / 144.
TEST(Statistics, PoolsWhatHasChangedMoreAlike) {
  const Pooled two = pooled(std::vector<Known>{{1, 1}, {3, 1}});
  EXPECT_DOUBLE_EQ(two.mean, 2);
  EXPECT_DOUBLE_EQ(two.error, 1);
  EXPECT_NEAR(pooled(std::vector<Known>{{0, 1}, {12, 3}}).mean, 12.0 * 68 / 144, 1e-9);
}

// Five timings alike to the last digit are no reason to lose all digits. Two that differ by 1: found 1 / 0.01^2 = 10^4
// where 1 is foretold, in weights of 2 x 10^4, so that the thing itself varies by (10^4 - 1) / 2 x 10^4 and both weigh
// as good as the same.
TEST(Pooled, OneMayBeKnownFarBetterThanTheOthers) {
  for (const double error : {5e-21, 1e-30, 1e-300}) {
    const Pooled near = pooled(std::vector<Known>{{1.397e-5, 4e-7}, {1.368e-5, error}});
    EXPECT_NEAR(near.mean, 1.368e-5, 1e-12);
    EXPECT_GT(near.error, 0);
    const Pooled apart = pooled(std::vector<Known>{{1, 0.01}, {2, error}});
    EXPECT_NEAR(apart.mean, 1.5, 1e-3);
    EXPECT_NEAR(apart.weights[0] + apart.weights[1], 1, 1e-12);
  }
}

TEST(Statistics, NothingHasNone) {
  EXPECT_EQ(pooled({}).mean, 0);
  EXPECT_EQ(mean_of_usual({}), 0);
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(relative_spread({}, 3), 0);
  EXPECT_EQ(relative_spread(std::vector<double>{-1, 0, 1}, 0), 0);
}

}  // namespace
}  // namespace sibyl

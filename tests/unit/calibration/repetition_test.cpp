#include "calibration/repetition.h"

#include <gtest/gtest.h>

#include <vector>

namespace sibyl {
namespace {

bool another(const Repetition& repetition, const std::vector<double>& times) { return repetition.another(times); }

TEST(Repetition, GoesOnUntilEachKernelHasItsSamples) {
  EXPECT_TRUE(another({3}, {}));
  EXPECT_TRUE(another({3}, {0.001, 0.002}));
  EXPECT_FALSE(another({3}, {0.001, 0.002, 0.003}));
}

// 20 and 40 ms: mean 30, standard deviation sqrt(2 * 10^2 / 1) = 14.1, standard error 14.1 / sqrt(2) = 10 ms, a third.
// Twice each: deviation sqrt(4 * 10^2 / 3) = 11.5, error 5.77 ms, 19 %.
TEST(Repetition, GoesOnUntilTheMeanOfALongKernelIsKnown) {
  const std::vector<double> two{0.020, 0.040}, four{0.020, 0.040, 0.020, 0.040};
  EXPECT_FALSE(another({1}, two)) << "nobody asked how well it is known";
  EXPECT_TRUE(another({1, 0.32}, two));
  EXPECT_FALSE(another({1, 0.34}, two));
  EXPECT_TRUE(another({1, 0.19}, four));
  EXPECT_FALSE(another({1, 0.20}, four));
  EXPECT_FALSE(another({1, 0.05}, {0.030})) << "one sample does not tell";
}

TEST(Repetition, LetsShortKernelsVary) { EXPECT_FALSE(another({1, 0.05}, {0.0010, 0.0020})); }

}  // namespace
}  // namespace sibyl

#include "calibration/composition.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sibyl {
namespace {

std::vector<StepSample> steps(const std::vector<double>& measured_over_predicted) {
  std::vector<StepSample> result;
  for (const double ratio : measured_over_predicted) result.push_back({"a step", Seconds{2.0}, Seconds{2.0 * ratio}, 0.01});
  return result;
}

TEST(Composition, NothingIsLearntFromFewerThanThreeSteps) {
  const Composition none = composition_of(steps({1.5, 1.5}));
  EXPECT_FALSE(none.measured);
  EXPECT_DOUBLE_EQ(none.factor, 1.0);
  EXPECT_DOUBLE_EQ(none.relative_error, 0.10);
}

// What is known of devices of one name counts until steps were run; these hold it.
TEST(Composition, DevicesDifferWhereNoStepsWereRun) {
  EXPECT_DOUBLE_EQ(composition_of({}, 0.015).spread, 0.015);
  EXPECT_DOUBLE_EQ(composition_of(steps({1.5, 1.5}), 0.015).spread, 0.015);
  EXPECT_DOUBLE_EQ(composition_of(steps({1.2, 0.9, 1.0}), 0.015).spread, 0.01);
}

// Ratios 0.9, 1.0, 1.2: the median is 1, the squares around it 0.01 + 0 + 0.04 = 0.05, over n - 1 = 2 is 0.025, and with the
// uncertainty of the middle itself 0.025 (1 + 1/3) = 1/30. Student's 95 % quantile with two degrees of freedom is 2.9200 in any
// table, the normal one 1.6449.
TEST(Composition, FewStepsAreJudgedByStudentsDistribution) {
  const Composition learnt = composition_of(steps({1.2, 0.9, 1.0}));
  EXPECT_TRUE(learnt.measured);
  EXPECT_DOUBLE_EQ(learnt.factor, 1.0);
  EXPECT_NEAR(learnt.relative_error, std::sqrt(1.0 / 30) * 2.9200 / 1.6449, 1e-4);
  EXPECT_DOUBLE_EQ(learnt.spread, 0.01);
}

// The same scatter from many steps: Student's distribution has become the normal one.
TEST(Composition, ManyStepsLeaveTheirOwnDeviation) {
  std::vector<double> ratios = {1.0};
  for (int i = 0; i < 500; ++i) ratios.insert(ratios.end(), {0.95, 1.05});
  EXPECT_NEAR(composition_of(steps(ratios)).relative_error, 0.05, 0.0005);
}

TEST(Composition, TheFactorIsWhatAStepTakesOverTheSumOfItsParts) {
  EXPECT_DOUBLE_EQ(composition_of(steps({1.1, 1.1, 1.1})).factor, 1.1);
  EXPECT_NEAR(composition_of(steps({1.1, 1.1, 1.1})).relative_error, 0.0, 1e-12);
}

// 1.0, 1.2, 1.4: squares of 1/6 around the median, over 2, make a variance of 1/36; the median's is pi/2 of a third of that, 0.014544.
// Beside the 0.01 that is expected without samples, 0.01 / 0.024544 of the 20 % are believed.
TEST(Composition, AFactorIsBelievedAsFarAsItsSamplesAgree) {
  EXPECT_NEAR(composition_of(steps({1.4, 1.0, 1.2})).factor, 1 + 0.2 * 0.01 / 0.024544, 1e-5);
  EXPECT_GT(composition_of(steps({1.21, 1.19, 1.2})).factor, 1.19);
}

}  // namespace
}  // namespace sibyl

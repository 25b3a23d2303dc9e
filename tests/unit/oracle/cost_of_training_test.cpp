#include "oracle/cost_of_training.h"

#include <gtest/gtest.h>

namespace sibyl {
namespace {

Prediction half_a_second() {
  Prediction p;
  p.step_time = Seconds{0.5};
  p.interval_low = Seconds{0.4};
  p.interval_high = Seconds{0.7};
  p.devices = 8;
  p.global_batch = 1000;
  return p;
}

// 7,200,500 samples in batches of 1,000 are 7,201 steps, the last one not full. At 0.5 s that is 3,600.5 s; with 8
// devices 8 x 3600.5 / 3600 device-hours, at 2.5 each.
TEST(CostOfTraining, StepsTimeAndPrice) {
  const TrainingCost cost = cost_of_training(half_a_second(), 7'200'500, 2.5);
  EXPECT_EQ(cost.steps, 7201);
  EXPECT_DOUBLE_EQ(cost.time.value(), 3600.5);
  EXPECT_DOUBLE_EQ(cost.low.value(), 7201 * 0.4);
  EXPECT_DOUBLE_EQ(cost.high.value(), 7201 * 0.7);
  EXPECT_DOUBLE_EQ(cost.device_hours, 8 * 3600.5 / 3600);
  EXPECT_DOUBLE_EQ(cost.price, 2.5 * 8 * 3600.5 / 3600);
}

TEST(CostOfTraining, AFullLastStepIsNotRoundedUp) {
  EXPECT_EQ(cost_of_training(half_a_second(), 3000, 0).steps, 3);
  EXPECT_EQ(cost_of_training(half_a_second(), 3000, 0).price, 0);
}

// Twice the devices in half the time are as many device-hours; at three times the price they cost thrice. Where one has
// no price hours are compared.
TEST(CostOfTraining, RatiosOfTimeAndMoney) {
  Prediction faster = half_a_second();
  faster.step_time = Seconds{0.25};
  faster.devices = 16;
  const TrainingCost then = cost_of_training(half_a_second(), 1'000'000, 1);
  EXPECT_DOUBLE_EQ(ratios(cost_of_training(faster, 1'000'000, 3), then).time, 0.5);
  EXPECT_DOUBLE_EQ(ratios(cost_of_training(faster, 1'000'000, 3), then).cost, 3);
  EXPECT_DOUBLE_EQ(ratios(cost_of_training(faster, 1'000'000, 0), then).cost, 1);
}

TEST(CostOfTraining, NoSamplesTakeNothing) {
  for (const std::int64_t samples : {std::int64_t{0}, std::int64_t{-5}}) {
    EXPECT_EQ(cost_of_training(half_a_second(), samples, 1).steps, 0);
    EXPECT_EQ(cost_of_training(half_a_second(), samples, 1).time.value(), 0);
  }
}

}  // namespace
}  // namespace sibyl

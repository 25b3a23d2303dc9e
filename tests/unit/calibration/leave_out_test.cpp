#include "calibration/leave_out.h"

#include <gtest/gtest.h>

namespace sibyl {
namespace {

Calibration machine() {
  Calibration c;
  c.device.backend = Backend::cuda;
  c.device.peak[DType::f32] = FlopsPerSecond{10e12};
  c.device.memory_bandwidth = BytesPerSecond{100e9};
  return c;
}

KernelSample relu(std::int64_t elements, double seconds) {
  KernelSample s;
  s.key = *parse_kernel_key("forward unary[" + std::to_string(elements) + "]->[" + std::to_string(elements) + "]:f32");
  s.time = Seconds{seconds};
  return s;
}

// Twice the roofline at every size: whatever is left out, the rest foretells it.
TEST(LeaveOut, FindsNoErrorWhereThereIsNone) {
  Calibration c = machine();
  for (int i = 10; i < 90; ++i) {
    const double elements = 1000.0 * i * i;
    c.kernels.push_back(relu(1000 * i * i, 2 * (8 * elements / 100e9 + 2e-6)));
  }
  const auto errors = left_out(c);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].kernels, "elementwise");
  EXPECT_EQ(errors[0].count, 80U);
  EXPECT_LT(errors[0].p90, 1e-9);
  EXPECT_NEAR(errors[0].within_one, 1.0, 1e-9);
}

// The truth takes 1.25 times what the calibration says at each size: predicted / measured = 0.8 everywhere.
TEST(LeaveOut, MeasuresAgainstATruth) {
  Calibration c = machine(), truth = machine();
  for (int i = 16; i < 26; ++i) {
    const double elements = static_cast<double>(1 << i);
    c.kernels.push_back(relu(1 << i, 8 * elements / 100e9 + 2e-6));
    truth.kernels.push_back(relu(3 << (i - 2), 1.25 * (6 * elements / 100e9 + 2e-6)));
  }
  const auto errors = against(c, truth);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].count, 10U);
  EXPECT_NEAR(errors[0].median, 0.2, 1e-6);
  EXPECT_NEAR(errors[0].bias, -0.2, 1e-6);
}

// No kernel of an A100 SXM 40GB was timed; that with 80 GB, whose silicon it shares, was, and says what a product
// takes.
TEST(LeaveOut, DonorsAnswerForATruthToo) {
  const auto own = shipped_calibration("a100-sxm-40gb"), donor = shipped_calibration("a100-sxm-80gb");
  ASSERT_TRUE(own && donor);
  Calibration truth;
  for (const KernelSample& sample : donor->kernels)
    if (std::holds_alternative<Linear>(sample.key.signature.attributes) && sample.time > Seconds{1e-3})
      truth.kernels.push_back(sample);
  const auto errors = against(*own, truth);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_LT(errors[0].median, 0.02);
}

// T4 from what others say of it: every kind of its samples is answered, at most 400 of each, and none by itself.
TEST(LeaveOut, HidesAWholeDevice) {
  const auto t4 = shipped_calibration("t4");
  ASSERT_TRUE(t4);
  const auto errors = hidden(*t4, false);
  EXPECT_GE(errors.size(), 6U);
  for (const KernelErrors& e : errors) {
    EXPECT_LE(e.count, 400U) << e.kernels;
    EXPECT_GT(e.median, 0.001) << e.kernels;  // an exact answer would be T4's own sample
  }
}

}  // namespace
}  // namespace sibyl

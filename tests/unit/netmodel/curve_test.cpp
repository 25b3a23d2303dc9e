#include "netmodel/curve.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace sibyl {
namespace {

std::vector<CurvePoint> sampled(double alpha, double beta, double from, double to) {
  std::vector<CurvePoint> points;
  for (double bytes = from; bytes <= to; bytes *= 2) points.push_back({bytes, alpha + beta * bytes, 0.0});
  return points;
}

TEST(Curve, FindsOneLineExactly) {
  const Curve curve = Curve::fit(sampled(10e-6, 1e-8, 1, 1 << 24));
  ASSERT_EQ(curve.segments().size(), 1U);
  EXPECT_NEAR(curve.segments()[0].alpha, 10e-6, 1e-12);
  EXPECT_NEAR(curve.segments()[0].beta, 1e-8, 1e-15);
  EXPECT_LT(curve.error(), 1e-9);
  EXPECT_NEAR(curve.seconds(3e6), 10e-6 + 3e-2, 1e-9);
  EXPECT_TRUE(curve.sampled(1000 * 1.04));  // 1024 within 2 %
  EXPECT_FALSE(curve.sampled(1500));
}

// Eager up to 32 KiB (5 us + bytes / (1 GB/s)), rendezvous from 64 KiB (60 us + bytes / (2 GB/s)).
TEST(Curve, FindsWhereTheProtocolSwitches) {
  std::vector<CurvePoint> points = sampled(5e-6, 1e-9, 64, 32768);
  for (const CurvePoint& point : sampled(60e-6, 0.5e-9, 65536, 1 << 26)) points.push_back(point);
  const Curve curve = Curve::fit(points);
  ASSERT_EQ(curve.segments().size(), 2U);
  EXPECT_GT(curve.segments()[1].from, 32768);
  EXPECT_LT(curve.segments()[1].from, 65536);
  EXPECT_NEAR(curve.seconds(1024), 5e-6 + 1.024e-6, 1e-9);
  EXPECT_NEAR(curve.seconds(1 << 20), 60e-6 + (1 << 20) * 0.5e-9, 1e-8);
}

// A port that holds 32 KiB lets these pass in 20 us, and what is longer at 8 ns a byte: 20 us + 8 ns (bytes - 32 KiB),
// a line that meets the axis below 0. Messages 64 times as long as any sampled follow its slope.
TEST(Curve, WhatAPortHoldsDoesNotBendTheSlopeOfLongMessages) {
  std::vector<CurvePoint> points = sampled(20e-6, 0.0, 64, 32768);
  for (const CurvePoint& point : sampled(20e-6 - 32768 * 8e-9, 8e-9, 65536, 1 << 20)) points.push_back(point);
  const Curve curve = Curve::fit(points);
  EXPECT_NEAR(curve.seconds(1 << 26) / (20e-6 + ((1 << 26) - 32768) * 8e-9), 1.0, 1e-3);
  EXPECT_NEAR(curve.seconds(65536) / (20e-6 + 32768 * 8e-9), 1.0, 1e-3);
  EXPECT_GE(curve.seconds(0), 20e-6 * 0.99);
}

// Messages both ways on a wire of 100 Mb/s as they were timed, the longest at 86.1 ns a byte; with headers the wire
// takes 85.0. Least squares of relative errors make 93 of it, for 4 KiB and 64 KiB are 25 % off any line.
TEST(Curve, LongMessagesAreToldByTheLongest) {
  std::vector<CurvePoint> points;
  for (const auto& [bytes, milliseconds] :
       {std::pair{1.0, 0.114}, std::pair{64.0, 0.135}, std::pair{1024.0, 0.133}, std::pair{2048.0, 0.216},
        std::pair{4096.0, 0.411}, std::pair{8192.0, 0.784}, std::pair{16384.0, 1.19}, std::pair{24576.0, 1.96},
        std::pair{32768.0, 2.8}, std::pair{49152.0, 4.33}, std::pair{65536.0, 7.02}, std::pair{131072.0, 11.84},
        std::pair{524288.0, 45.16}})
    points.push_back({bytes, milliseconds * 1e-3, 0.0});
  const Curve curve = Curve::fit(points);
  const double per_byte = (curve.seconds(1 << 26) - curve.seconds(1 << 25)) / (1 << 25);
  EXPECT_GT(per_byte, 84e-9);
  EXPECT_LT(per_byte, 88e-9);
  EXPECT_NEAR(curve.seconds(524288) / 45.16e-3, 1.0, 0.02);
}

TEST(Curve, IsNotMovedByOneOutlier) {
  std::vector<CurvePoint> points = sampled(10e-6, 1e-8, 1, 1 << 24);
  points[12].seconds *= 5;  // someone else used the machine
  const Curve curve = Curve::fit(points);
  EXPECT_NEAR(curve.seconds(1 << 20) / (10e-6 + (1 << 20) * 1e-8), 1.0, 0.02);
  EXPECT_GT(curve.error(), 0.1) << "but the error tells of it";
}

TEST(Curve, TakesTheMedianOfOneSizeAndLeavesOutNonsense) {
  const std::vector<CurvePoint> points =
      merged({{100, 3.0, 0.0}, {100, 1.0, 0.0}, {100, 2.0, 0.0}, {50, 1.0, 0.0}, {60, -1.0, 0.0}, {70, 0.0, 0.0}});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].bytes, 50);
  EXPECT_EQ(points[1].seconds, 2.0);
  EXPECT_DOUBLE_EQ(points[1].spread, 1.4826 * 1.0 / 2.0);
  EXPECT_TRUE(Curve::fit({}).empty());
}

// Of two the mean, and half of what lies between them is a spread; of four the mean of the two in the middle.
TEST(Curve, TakesTheMiddleOfAnEvenNumberOfOneSize) {
  const std::vector<CurvePoint> two = merged({{100, 3.0, 0.0}, {100, 5.0, 0.01}});
  ASSERT_EQ(two.size(), 1U);
  EXPECT_DOUBLE_EQ(two[0].seconds, 4.0);
  EXPECT_DOUBLE_EQ(two[0].spread, 0.25);
  EXPECT_DOUBLE_EQ(merged({{100, 1.0, 0.0}, {100, 9.0, 0.0}, {100, 4.0, 0.0}, {100, 2.0, 0.0}})[0].seconds, 3.0);
}

// What one of three samples met moves neither the time nor its error, which is then what each sample knows of itself.
TEST(Curve, IsNotMovedByOneBadMomentOfThree) {
  const CurvePoint point = merged({{100, 1.0, 0.02}, {100, 9.0, 0.01}, {100, 1.0, 0.02}}).at(0);
  EXPECT_EQ(point.seconds, 1.0);
  EXPECT_EQ(point.spread, 0.02);
}

TEST(Curve, NeverFallsWhateverTheSamples) {
  EXPECT_TRUE(rc::check("more bytes are never faster", [] {
    const auto sizes = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 1 << 22));
    std::vector<CurvePoint> points;
    for (const int size : sizes)
      points.push_back({static_cast<double>(size), 1e-6 * *rc::gen::inRange(1, 100'000), 0.0});
    const Curve curve = Curve::fit(points);
    RC_PRE(!curve.empty());
    const double a = *rc::gen::inRange(0, 1 << 23), b = *rc::gen::inRange(0, 1 << 23);
    RC_ASSERT(curve.seconds(std::min(a, b)) <= curve.seconds(std::max(a, b)));
  }));
}

}  // namespace
}  // namespace sibyl

#include "profiler/torch/reuse_sweep.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace sibyl {
namespace {

constexpr double of_mib = 1024 * 1024;

// 16, 8 and 4 MiB; of each, distances from a block of 256 KiB to the whole step.
TEST(ReuseSweep, TimesEachDistanceOfEachStep) {
  int calls = 0;
  std::map<double, std::vector<double>> distances;
  for (const ReuseSample& sample : reuse_sweep(Bytes{16 * of_mib}, 1, [&] { ++calls; })) {
    distances[sample.step.value() / of_mib].push_back(sample.distance.value() / of_mib);
    EXPECT_GT(sample.rate.value(), 1e7);
    EXPECT_LT(sample.rate.value(), 1e12) << "a line in less than a fifth of a cycle was not read";
  }
  EXPECT_EQ(calls, 3) << "a barrier before each step, the same number of times on every rank";
  const std::map<double, std::vector<double>> expected{
      {4, {0.25, 0.5, 1, 2, 4}}, {8, {0.25, 0.5, 1, 2, 4, 8}}, {16, {0.25, 0.5, 1, 2, 4, 8, 16}}};
  EXPECT_EQ(distances, expected);
}

// Of 12 MiB 8 to 12 are nearest to 16.
TEST(ReuseSweep, NothingIsFartherAwayThanAStepIsLong) {
  std::map<double, double> farthest;
  for (const ReuseSample& sample : reuse_sweep(Bytes{12 * of_mib}, 1, [] {}))
    farthest[sample.step.value() / of_mib] = sample.distance.value() / of_mib;
  EXPECT_EQ(farthest, (std::map<double, double>{{6, 6}, {12, 12}}));
}

TEST(ReuseSweep, SaysTheSameDistancesOfSeveralThreads) {
  std::vector<double> distances;
  for (const ReuseSample& sample : reuse_sweep(Bytes{4 * of_mib}, 3, [] {})) {
    EXPECT_GT(sample.rate.value(), 0);
    distances.push_back(sample.distance.value() / of_mib);
  }
  EXPECT_EQ(distances, (std::vector<double>{0.25, 0.5, 1, 2, 4}));
}

TEST(ReuseSweep, OfLessThanTheSmallestStepIsNothing) {
  EXPECT_TRUE(reuse_sweep(Bytes{of_mib}, 1, [] {}).empty());
}

TEST(LastingSweep, TimesMemoryAndWhatWasTouchedTwiceUpTo128MillisecondsAgo) {
  int calls = 0;
  std::vector<int> touches;
  std::vector<double> ages;
  for (const LastingSample& sample : lasting_sweep(Bytes{1}, 3, [&] { ++calls; })) {
    EXPECT_GT(sample.rate.value(), 1e7);
    EXPECT_LT(sample.rate.value(), 3e12);
    touches.push_back(sample.touches);
    ages.push_back(1e3 * sample.age.value());
  }
  EXPECT_EQ(calls, 10) << "a barrier before each, the same number of times on every rank";
  EXPECT_EQ(touches, (std::vector{0, 2, 2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(ages, (std::vector<double>{0, 0, 1, 2, 4, 8, 16, 32, 64, 128}));
}

}  // namespace
}  // namespace sibyl

// A sweep's plan, its interpolation error and its refinement, over made-up kernels and times.
#include "profiler/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace sibyl {
namespace {

KernelKey relu_key(std::int64_t n) { return {{Unary{}, {{n}}, {{n}}, DType::f32}, Pass::forward, 0}; }
KernelKey addition(std::int64_t n) { return {{Binary{}, {{n}, {n}}, {{n}}, DType::f32}, Pass::forward, 0}; }

SweepGrid line(double low, double high, double step, int every) {
  return {
      "relu", {{low, high, step}}, [](const std::vector<std::int64_t>& s) { return SweepKeys{relu_key(s[0])}; }, every};
}

Device made_up() {
  Device d;
  d.name = "made up";
  d.peak[DType::f32] = FlopsPerSecond{1e13};
  d.memory_bandwidth = BytesPerSecond{1e12};
  d.memory = Bytes{1e10};
  return d;
}

// Memory-bound at a share of the device's bandwidth, which `efficiency` gives for a size.
KernelSample timed(const KernelKey& key, const std::function<double(double)>& efficiency) {
  const Work work = work_of(key, Backend::cuda);
  const double bytes = (work.read + work.written).value();
  KernelSample sample;
  sample.key = key;
  sample.time = Seconds{bytes / 1e12 / efficiency(static_cast<double>(element_count(key.signature.inputs[0])))};
  return sample;
}
std::vector<KernelSample> timed(const SweepKeys& keys, const std::function<double(double)>& efficiency) {
  std::vector<KernelSample> samples;
  for (const KernelKey& key : keys) samples.push_back(timed(key, efficiency));
  return samples;
}
double half(double) { return 0.5; }

TEST(SweepSize, IsAWholeNumberAndAboveThirtyTwoAMultipleOfEight) {
  EXPECT_EQ(sweep_size(0), 1);
  EXPECT_EQ(sweep_size(1.585), 3);  // 2^1.585 = 3.0002
  EXPECT_EQ(sweep_size(4), 16);
  EXPECT_EQ(sweep_size(5), 32);
  EXPECT_EQ(sweep_size(7.807), 224);  // 2^7.807 = 223.9
  EXPECT_EQ(sweep_size(10.5), 1448);  // 2^10.5 = 1448.2, and 1448 = 8 * 181
}

TEST(SweepPlan, HasTheGridAndEveryNthMiddle) {
  // Points 2^10 2^12 2^14 2^16 2^18: cells with middles 2^11, 2^13, 2^15, 2^17. Every second, from the second: 2^13,
  // 2^17.
  const Sweep sweep = plan_sweep({line(10, 18, 2, 2)}, {});
  ASSERT_EQ(sweep.points.size(), 1u);
  EXPECT_THAT(sweep.points[0],
              testing::ElementsAre(relu_key(1024), relu_key(4096), relu_key(16384), relu_key(65536), relu_key(262144)));
  ASSERT_EQ(sweep.checks.size(), 2u);
  EXPECT_THAT(sweep.checks[0].keys, testing::ElementsAre(relu_key(8192)));
  EXPECT_THAT(sweep.checks[1].keys, testing::ElementsAre(relu_key(131072)));
}

TEST(SweepPlan, IsTheProductOfItsAxes) {
  // 3 x 2 points and 2 x 1 cells, of which each is checked: middles (2^5, 2^7), (2^7, 2^7).
  SweepGrid grid{"matrix",
                 {{4, 8, 2}, {6, 8, 2}},
                 [](const std::vector<std::int64_t>& s) { return SweepKeys{relu_key(s[0] * 1000 + s[1])}; },
                 1};
  const Sweep sweep = plan_sweep({grid}, {});
  EXPECT_THAT(sweep.points[0], testing::ElementsAre(relu_key(16064), relu_key(16256), relu_key(64064), relu_key(64256),
                                                    relu_key(256064), relu_key(256256)));
  ASSERT_EQ(sweep.checks.size(), 2u);
  EXPECT_THAT(sweep.checks[0].keys, testing::ElementsAre(relu_key(32128)));
  EXPECT_THAT(sweep.checks[1].keys, testing::ElementsAre(relu_key(128128)));
}

TEST(SweepPlan, AnAxisOfOnePlaceHasNoCells) {
  SweepGrid grid{"row",
                 {{3, 3, 1}, {4, 6, 2}},
                 [](const std::vector<std::int64_t>& s) { return SweepKeys{relu_key(s[0] * 100 + s[1])}; },
                 1};
  const Sweep sweep = plan_sweep({grid}, {});
  EXPECT_THAT(sweep.points[0], testing::ElementsAre(relu_key(816), relu_key(864)));
  ASSERT_EQ(sweep.checks.size(), 1u);
  EXPECT_THAT(sweep.checks[0].keys, testing::ElementsAre(relu_key(832)));  // 8 stays, 2^5 = 32
}

TEST(SweepPlan, DropsWhatIsNotAcceptable) {
  const Sweep sweep =
      plan_sweep({line(10, 18, 2, 2)}, [](const KernelKey& key) { return key.signature.inputs[0][0] < 100'000; });
  EXPECT_EQ(sweep.points[0].size(), 4u);  // without 2^18
  EXPECT_EQ(sweep.checks.size(), 1u);     // without 2^17
}

TEST(SweepKeys, AnyBeginningCoversAllFamilies) {
  SweepGrid other = line(10, 24, 1, 2);
  other.family = "add";
  other.kernels = [](const std::vector<std::int64_t>& s) { return SweepKeys{addition(s[0])}; };
  const Sweep sweep = plan_sweep({line(10, 24, 1, 2), other}, {});
  const SweepKeys keys = sweep.keys();
  // Each family: 15 points and 7 of 14 middles.
  EXPECT_EQ(keys.size(), 2u * (15 + 7));
  std::set<std::string> distinct;
  for (const KernelKey& key : keys) distinct.insert(to_string(key));
  EXPECT_EQ(distinct.size(), keys.size());
  int relus = 0;
  for (std::size_t i = 0; i < 10; ++i) relus += std::holds_alternative<Unary>(keys[i].signature.attributes) ? 1 : 0;
  EXPECT_EQ(relus, 5);  // lists of one length take turns
}

TEST(SweepError, IsNothingWhereEfficiencyIsTheSameEverywhere) {
  const Sweep sweep = plan_sweep({line(22, 34, 1, 2)}, {});
  const auto errors = check_error(sweep, made_up(), timed(sweep.keys(), half));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].family, "relu");
  EXPECT_EQ(errors[0].points, 13u);
  EXPECT_EQ(errors[0].checks, 6u);  // of 12 cells
  EXPECT_LT(errors[0].greatest, 0.02);
}

TEST(SweepError, ComesFromThePointsAloneAndSeesAKernelThatIsUnlikeItsNeighbours) {
  // Between 2^27 and 2^28 the kernel is three times as slow, and only a check lies there: interpolation from the
  // points, which know nothing of it, is a third of what was timed: |1/3 - 1| = 0.67.
  const Sweep sweep = plan_sweep({line(22, 34, 1, 2)}, {});
  const auto slow = [](double n) { return n > std::exp2(27.1) && n < std::exp2(27.9) ? 0.5 / 3 : 0.5; };
  const auto errors = check_error(sweep, made_up(), timed(sweep.keys(), slow));
  EXPECT_NEAR(errors[0].greatest, 2.0 / 3, 0.03);
  EXPECT_LT(errors[0].median, 0.02);
  EXPECT_NEAR(errors[0].p90, errors[0].greatest, 1e-12);  // of 6, the ninth decile is the largest
}

TEST(SweepError, SaysNothingOfWhatWasNotTimed) {
  const Sweep sweep = plan_sweep({line(22, 34, 1, 2)}, {});
  const auto errors = check_error(sweep, made_up(), timed(sweep.points[0], half));
  EXPECT_EQ(errors[0].points, 13u);
  EXPECT_EQ(errors[0].checks, 0u);
}

TEST(SweepRefinement, CutsOnlyTheCellThatWasMissed) {
  Sweep sweep = plan_sweep({line(22, 34, 1, 2)}, {});
  const auto slow = [](double n) { return n > std::exp2(27.1) && n < std::exp2(27.9) ? 0.5 / 3 : 0.5; };
  const auto samples = timed(sweep.keys(), slow);
  EXPECT_EQ(refine(sweep, made_up(), samples, 0.15, {}), 1u);
  // The check of the cell from 2^27 to 2^28 is a point now; its halves' middles are checked: 2^27.25 and 2^27.75.
  EXPECT_EQ(sweep.points[0].back(), relu_key(sweep_size(27.5)));
  EXPECT_EQ(sweep.checks.size(), 5u + 2u);
  EXPECT_THAT(sweep.checks[5].keys, testing::ElementsAre(relu_key(sweep_size(27.25))));
  EXPECT_THAT(sweep.checks[6].keys, testing::ElementsAre(relu_key(sweep_size(27.75))));
  EXPECT_EQ(refine(sweep, made_up(), timed(sweep.keys(), half), 0.15, {}), 0u);
}

}  // namespace
}  // namespace sibyl

// Tables written by hand: what a cache still holds of what a step touches.
#include "profiler/reuse_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace sibyl {
namespace {

constexpr double one_mib = 1024 * 1024;

// In MiB, and read at so many GB/s.
ReuseSample in_step(double step, double distance, double rate) {
  return {Bytes{step * one_mib}, Bytes{distance * one_mib}, BytesPerSecond{rate * 1e9}};
}

double found(const ReuseCurve& curve, double distance, double near, double step, double milliseconds = 0) {
  return curve.found({Bytes{distance * one_mib}, Seconds{1e-3 * milliseconds}}, Bytes{near * one_mib},
                     Bytes{step * one_mib});
}

std::vector<ReadSample> reads(const std::vector<std::pair<double, double>>& rates) {
  std::vector<ReadSample> samples;
  for (const auto& [size, rate] : rates)
    samples.push_back({Bytes{size * one_mib}, Bytes{size * one_mib} / BytesPerSecond{rate * 1e9}});
  return samples;
}

// Of a byte 1/40 ns within 1 MiB, in a step of 16 MiB 1/20 farther away, in one of 64 MiB 1/10, which is memory: 20
// saves (1/10 - 1/20) / (1/10 - 1/40) of what 40 does. Of two steps and two distances in the logarithm.
TEST(ReuseCurve, GoesByWhatComesInBetweenAndByTheWholeStep) {
  const ReuseCurve curve({in_step(64, 4, 10), in_step(16, 1, 40), in_step(16, 4, 20), in_step(64, 1, 40)}, {}, {});
  ASSERT_TRUE(curve.known());
  EXPECT_DOUBLE_EQ(found(curve, 0.5, 1, 16), 1);
  EXPECT_DOUBLE_EQ(found(curve, 1, 1, 64), 1) << "near enough in any step";
  EXPECT_NEAR(found(curve, 4, 1, 16), 2.0 / 3, 1e-12);
  EXPECT_NEAR(found(curve, 16, 1, 16), 2.0 / 3, 1e-12) << "farther than was measured";
  EXPECT_NEAR(found(curve, 2, 1, 16), 5.0 / 6, 1e-12);
  EXPECT_NEAR(found(curve, 4, 1, 32), 1.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(found(curve, 4, 1, 64), 0);
  EXPECT_DOUBLE_EQ(found(curve, INFINITY, 1, 1e6), 0);
  EXPECT_NEAR(found(curve, 4, 1, 1), 2.0 / 3, 1e-12) << "a smaller step than was measured";
  EXPECT_DOUBLE_EQ(found(curve, 4, 4, 16), 1) << "as far as where it was timed";
  EXPECT_DOUBLE_EQ(found(curve, 1, 64, 64), 0) << "that was timed out of memory";
}

TEST(ReuseCurve, TakesNothingToBeReadFasterForBeingFarAwayOrOfALargeStep) {
  const ReuseCurve far({in_step(16, 1, 5), in_step(16, 2, 40), in_step(16, 4, 10)}, {}, {});
  EXPECT_DOUBLE_EQ(found(far, 1, 2, 16), 1) << "disturbed";
  const ReuseCurve large({in_step(16, 1, 5), in_step(32, 1, 40), in_step(64, 1, 40), in_step(64, 4, 10)}, {}, {});
  EXPECT_DOUBLE_EQ(found(large, 1, 1, 16), 1);
}

// A working set that is read again and again comes back to each of its bytes after all the others, however large the
// step is.
TEST(ReuseCurve, IsTheSweepOfReadsWhereNothingElseIsKnown) {
  const ReuseCurve curve({}, reads({{128, 10}, {16, 40}, {32, 40}, {64, 20}}), {});
  for (const double step : {1.0, 1e6}) {
    EXPECT_DOUBLE_EQ(found(curve, 0, 16, step), 1);
    EXPECT_DOUBLE_EQ(found(curve, 32, 16, step), 1);
    EXPECT_NEAR(found(curve, 64, 16, step), 2.0 / 3, 1e-12);
    EXPECT_NEAR(found(curve, 64 * std::sqrt(2.0), 16, step), 1.0 / 3, 1e-12);
    EXPECT_DOUBLE_EQ(found(curve, 128, 16, step), 0);
  }
}

LastingSample lasting(int touches, double milliseconds, double rate) {
  return {touches, Seconds{1e-3 * milliseconds}, BytesPerSecond{rate * 1e9}};
}

// What comes from memory takes 1/10 ns a byte, what was just touched twice 1/20, what was touched 4 ms ago 1/15 (it
// saves 1/30 of 1/20, two thirds), 8 ms ago 1/10. In between it goes by the time.
TEST(ReuseCurve, LosesWithTimeWhatIsNotTouched) {
  const ReuseCurve curve({in_step(16, 1, 40), in_step(16, 4, 20), in_step(16, 16, 10)}, {}, {},
                         {lasting(2, 8, 10), lasting(2, 0, 20), lasting(0, 0, 10), lasting(2, 4, 15)});
  EXPECT_DOUBLE_EQ(found(curve, 1, 1, 16), 1);
  EXPECT_NEAR(found(curve, 1, 1, 16, 4), 2.0 / 3, 1e-12);
  EXPECT_NEAR(found(curve, 1, 1, 16, 2), 5.0 / 6, 1e-12);
  EXPECT_NEAR(found(curve, 4, 1, 16, 6), 2.0 / 3 / 3, 1e-12) << "as far as it is there at all";
  EXPECT_DOUBLE_EQ(found(curve, 1, 1, 16, 8), 0);
  EXPECT_DOUBLE_EQ(found(curve, 1, 1, 16, 1e6), 0);
  const ReuseCurve disturbed({in_step(16, 1, 40), in_step(16, 4, 10)}, {}, {},
                             {lasting(0, 0, 10), lasting(2, 0, 20), lasting(2, 4, 15), lasting(2, 8, 20)});
  EXPECT_NEAR(found(disturbed, 1, 1, 16, 8), 2.0 / 3, 1e-12) << "nothing comes back by itself";
}

// A cache smaller than the sweep's tensors: what was touched twice comes from memory, too, and what differs is noise.
TEST(ReuseCurve, LearnsNothingWhereAllComesFromMemory) {
  const std::vector<ReuseSample> samples{in_step(16, 1, 40), in_step(16, 4, 10)};
  for (const double rate : {10.0, 12.0})
    EXPECT_DOUBLE_EQ(found(ReuseCurve(samples, {}, {}, {lasting(0, 0, 10), lasting(2, 0, rate), lasting(2, 4, 10.1)}),
                           1, 1, 16, 1000),
                     1);
  EXPECT_DOUBLE_EQ(found(ReuseCurve(samples, {}, {}, {lasting(2, 0, 20), lasting(2, 4, 10)}), 1, 1, 16, 4), 1)
      << "what comes from memory was not timed";
}

TEST(ReuseCurve, WithoutASweepEndsWithTheCache) {
  const ReuseCurve curve({}, {}, Bytes{32 * one_mib});
  EXPECT_DOUBLE_EQ(found(curve, 32, 1, 256), 1);
  EXPECT_DOUBLE_EQ(found(curve, 64, 1, 256), 0);
  EXPECT_FALSE(ReuseCurve({}, {}, {}).known());
  EXPECT_FALSE(ReuseCurve({in_step(16, 1, 40)}, {}, {}).known()) << "one sample compares nothing";
  EXPECT_DOUBLE_EQ(found(ReuseCurve({in_step(16, 1, 40)}, {}, Bytes{32 * one_mib}), 32, 1, 256), 1);
  EXPECT_DOUBLE_EQ(found(ReuseCurve(), 1, 1, 1), 0) << "nothing is known";
}

}  // namespace
}  // namespace sibyl

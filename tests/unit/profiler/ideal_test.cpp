#include "profiler/interpolation/ideal.h"

#include <gtest/gtest.h>

namespace sibyl::interpolation {
namespace {

// Ten multiprocessors of 1 TFLOP/s each; memory so fast that it never matters; 2 us of start-up.
Device ten_units() {
  Device d;
  d.peak[DType::f32] = FlopsPerSecond{10e12};
  d.memory_bandwidth = BytesPerSecond{1e15};
  d.multiprocessors = 10;
  return d;
}

double ideal(const Device& device, int m, int n, int k) {
  const std::string rows = std::to_string(m), columns = std::to_string(n), depth = std::to_string(k);
  const auto key = parse_kernel_key("forward linear[" + rows + "x" + depth + "," + columns + "x" + depth + "]->[" +
                                    rows + "x" + columns + "]:f32");
  return ideal_time(device, *key).value();
}

// 1280 x 128 results are ten tiles of 128 x 128, one for each multiprocessor: 2 * 128 * 128 * 64 FLOPs at 1
// TFLOP/s, 2.097 us.
TEST(IdealTime, OfAFullWaveIsTheRoofline) { EXPECT_NEAR(ideal(ten_units(), 1280, 128, 64), 2.097e-6 + 2e-6, 1e-9); }

// One row more is an eleventh tile, a second wave: 4.194 us. Tiles of 64 x 64 do better: 21 * 2 = 42 of them, five
// waves of 2 * 64 * 64 * 64 FLOPs at 0.8 TFLOP/s, 5 * 0.655 = 3.277 us (64 x 128: three waves of 1.140 us, 3.419).
TEST(IdealTime, PaysForAWaveThatIsNotFull) { EXPECT_NEAR(ideal(ten_units(), 1281, 128, 64), 3.277e-6 + 2e-6, 1e-9); }

// One tile of 128 x 128 and K = 65536 would leave nine multiprocessors idle for 2.147 ms: K is split instead, and at
// best all ten share it.
TEST(IdealTime, SplitsALongSum) {
  const double time = ideal(ten_units(), 128, 128, 65536);
  EXPECT_GE(time, 2.147e-3 / 10);
  EXPECT_LT(time, 2.147e-3 / 5);
}

TEST(IdealTime, WithoutMultiprocessorsIsTheRoofline) {
  Device plain = ten_units();
  plain.multiprocessors = 0;
  EXPECT_NEAR(ideal(plain, 1281, 128, 64), 2.0 * 1281 * 128 * 64 / 10e12 + 2e-6, 1e-12);
}

// Flash attention skips the blocks above the diagonal: half of the work.
TEST(IdealTime, HalvesCausalAttention) {
  const std::string shapes = "[8x16x1024x64,8x16x1024x64,8x16x1024x64]->[8x16x1024x64]:f32";
  const double all = ideal_time(ten_units(), *parse_kernel_key("forward attention" + shapes)).value();
  const double causal = ideal_time(ten_units(), *parse_kernel_key("forward attention(causal=1)" + shapes)).value();
  EXPECT_NEAR((causal - 2e-6) / (all - 2e-6), 0.5, 1e-6);
}

}  // namespace
}  // namespace sibyl::interpolation

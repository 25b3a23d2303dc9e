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

std::string depthwise(int window, const std::string& type) {
  const std::string w = std::to_string(window), pad = std::to_string(window / 2);
  return "forward convolution(kernel=" + w + "x" + w + ",stride=1x1,dilation=1x1,pad_begin=" + pad + "x" + pad +
         ",pad_end=" + pad + "x" + pad + ",groups=32)[128x32x112x112,32x1x" + w + "x" + w +
         "]->[128x32x112x112]:" + type;
}

// 128 * 32 * 112 * 112 results of 9 multiplications and additions each, at an eighth of 10 TFLOP/s: 739.9 us; 25/9 of
// that for 5 x 5. As long in f16, whose tensor cores it cannot use.
TEST(IdealTime, OfADepthwiseConvolutionGrowsWithTheWindow) {
  Device d = ten_units();
  d.peak[DType::f16] = FlopsPerSecond{80e12};
  const auto time = [&](const std::string& key) { return ideal_time(d, *parse_kernel_key(key)).value() - 2e-6; };
  EXPECT_NEAR(time(depthwise(3, "f32")), 739.875e-6, 1e-9);
  EXPECT_NEAR(time(depthwise(5, "f32")) / time(depthwise(3, "f32")), 25.0 / 9, 1e-9);
  EXPECT_DOUBLE_EQ(time(depthwise(3, "f16")), time(depthwise(3, "f32")));
  d.memory_bandwidth = BytesPerSecond{1e11};  // 411 MB are read and written
  EXPECT_NEAR(time(depthwise(3, "f32")), 4.11e-3, 1e-5);
}

// Of as many queries as keys a causal mask hides half of the work; of a quarter that are the last of the keys an
// eighth, whether the keys are there at once or come round from four ranks.
TEST(IdealTime, OfCausalAttentionIsWhatQueriesSee) {
  const auto time = [](const std::string& options, int queries, int keys) {
    const std::string q = "1x32x" + std::to_string(queries) + "x128", k = "1x32x" + std::to_string(keys) + "x128";
    const auto key =
        parse_kernel_key("forward attention" + options + "[" + q + "," + k + "," + k + "]->[" + q + "]:f32");
    EXPECT_TRUE(key) << options;
    return ideal_time(ten_units(), *key).value() - 2e-6;
  };
  EXPECT_NEAR(time("(causal=1)", 4096, 4096) / time("", 4096, 4096), 0.5, 1e-3);
  EXPECT_NEAR(time("(causal=1)", 1024, 4096) / time("", 1024, 4096), 0.875, 1e-3);
  EXPECT_NEAR(time("(causal=1,ring=4)", 1024, 1024) / time("(causal=1)", 1024, 4096), 1.0, 1e-3);
}

}  // namespace
}  // namespace sibyl::interpolation

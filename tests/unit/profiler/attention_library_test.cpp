#include "profiler/attention_library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "profiler/kernel_table.h"
#include "tests/unit/profiler/parsed_key.h"

namespace sibyl {
namespace {

using test::key;
using Library = AttentionLibrary;

std::vector<AttentionSpeed> known() {
  return {{Library::flash2, Pass::forward, false, 64, 1024, FlopsPerSecond{100e12}},
          {Library::flash2, Pass::forward, false, 64, 4096, FlopsPerSecond{200e12}},
          {Library::flash2, Pass::forward, false, 128, 1024, FlopsPerSecond{300e12}},
          {Library::flash2, Pass::forward, false, 128, 4096, FlopsPerSecond{400e12}},
          {Library::flash2, Pass::forward, true, 64, 1024, FlopsPerSecond{80e12}},
          {Library::flash2, Pass::backward, false, 64, 1024, FlopsPerSecond{50e12}}};
}

double speed(Library library, Pass pass, bool causal, std::int64_t width, std::int64_t length) {
  const auto found = attention_speed(known(), library, pass, causal, width, length);
  return found ? found->value() / 1e12 : -1;
}

// 2,048 lies half way from 1,024 to 4,096 in the logarithm, and a width of 64 √2 half way from 64 to 128.
TEST(AttentionSpeed, LiesBetweenWhatWasMeasured) {
  EXPECT_DOUBLE_EQ(speed(Library::flash2, Pass::forward, false, 64, 1024), 100);
  EXPECT_DOUBLE_EQ(speed(Library::flash2, Pass::forward, false, 64, 2048), 150);
  EXPECT_DOUBLE_EQ(speed(Library::flash2, Pass::forward, false, 128, 2048), 350);
  EXPECT_NEAR(speed(Library::flash2, Pass::forward, false, 91, 2048), 150 + 200 * (std::log2(91.0) - 6), 1e-9);
  EXPECT_DOUBLE_EQ(speed(Library::flash2, Pass::forward, false, 64, 128), 100);
  EXPECT_DOUBLE_EQ(speed(Library::flash2, Pass::forward, false, 256, 65536), 400);
}

// Causal forward has 80 of 100; so has causal backward. FlashAttention-2 is twice the first.
TEST(AttentionSpeed, OfOtherPassesAndLibraries) {
  EXPECT_DOUBLE_EQ(speed(Library::flash2, Pass::backward, true, 64, 1024), 40);
  EXPECT_DOUBLE_EQ(speed(Library::flash1, Pass::forward, false, 64, 1024), 50);
  EXPECT_DOUBLE_EQ(speed(Library::flash1, Pass::backward, true, 64, 1024), 20);
  EXPECT_EQ(speed(Library::cudnn, Pass::forward, false, 64, 1024), -1);
  EXPECT_FALSE(attention_speed({}, Library::flash2, Pass::forward, false, 64, 1024));
}

TEST(AttentionLibrary, IsNamed) {
  for (const std::string& name : attention_library_names()) EXPECT_EQ(to_string(*parse_attention_library(name)), name);
  const auto refused = parse_attention_library("flash4");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::usage);
}

std::string attention(int batch, const std::string& dtype = "bf16") {
  const std::string shape = std::to_string(batch) + "x32x1024x64";
  return "attention[" + shape + "," + shape + "," + shape + "]->[" + shape + "]:" + dtype;
}

// 16 sequences of 1,024 are the reference shape: 4 x 16,384 x 1,024 x 2,048 FLOPs, timed at 200 TFLOP/s; of 4 sequences
// a quarter of them at 100.
class OnADevice : public testing::Test {
 protected:
  static constexpr double flops = 4.0 * 16384 * 1024 * 2048;

  OnADevice() {
    Device device;
    device.peak[DType::bf16] = device.peak[DType::f32] = FlopsPerSecond{1000e12};
    device.memory_bandwidth = BytesPerSecond{3e12};
    device.attention_speeds = known();
    std::vector<KernelSample> samples(3);
    samples[0].key = key("forward " + attention(16));
    samples[0].time = Seconds{flops / 200e12};
    samples[1].key = key("forward " + attention(4));
    samples[1].time = Seconds{flops / 4 / 100e12};
    samples[2].key = key("forward " + attention(16, "f32"));
    samples[2].time = Seconds{1.0};
    table_ = std::make_unique<KernelTable>(device, samples);
  }

  [[nodiscard]] Estimate by(Library library, const std::string& text) const {
    return attention_by(library, *table_, key(text)).time;
  }

  std::unique_ptr<KernelTable> table_;
};

TEST_F(OnADevice, AnotherLibraryIsCarriedOverByTheReferenceShape) {
  EXPECT_NEAR(by(Library::flash2, "forward " + attention(16)).time.value(), flops / 100e12, 1e-9);
  EXPECT_NEAR(by(Library::flash1, "forward " + attention(16)).time.value(), flops / 50e12, 1e-9);
  EXPECT_NEAR(by(Library::flash2, "forward " + attention(4)).time.value(), flops / 4 / 50e12, 1e-9);
  // At 50 TFLOP/s, 2.5 times the FLOPs.
  EXPECT_NEAR(by(Library::flash2, "backward:111 " + attention(16)).time.value(), 2.5 * flops / 50e12, 1e-9);
  const Estimate carried = by(Library::flash2, "forward " + attention(16));
  EXPECT_EQ(carried.provenance, Provenance::interpolated);
  EXPECT_GE(carried.relative_error, 0.15);
}

TEST_F(OnADevice, WhatIsNotKnownStaysAsTimed) {
  for (const Library library : {Library::timed, Library::cudnn}) {
    EXPECT_EQ(by(library, "forward " + attention(16)).time, Seconds{flops / 200e12});
    EXPECT_EQ(by(library, "forward " + attention(16)).provenance, Provenance::measured);
  }
  EXPECT_EQ(by(Library::flash2, "forward " + attention(16, "f32")).time, Seconds{1.0});
}

}  // namespace
}  // namespace sibyl

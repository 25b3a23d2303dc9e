#include "profiler/torch/limits.h"

#include <gtest/gtest.h>

#include "aten/memory.h"

namespace sibyl {
namespace {

// Eight ranks of a machine that reports 480 MiB of cache and has 24 GiB of memory would each want three arrays of four
// times the cache that was found, 256 MiB: all of it.
TEST(Limits, ArraysTakeNoMoreThanTheMemoryGiven) {
  TimingOptions options;
  options.budget = Seconds{1e-3};
  options.cache = Bytes{64 << 20};
  aten::MemoryMeter::install();
  const auto taken = [&](double most) {
    options.most_memory = Bytes{most};
    const std::int64_t before = aten::MemoryMeter::live();
    aten::MemoryMeter::reset_peak();
    const Result<BytesPerSecond> rate = measure_memory_bandwidth(options);
    EXPECT_TRUE(rate && rate->value() > 0);
    return static_cast<double>(aten::MemoryMeter::peak() - before);
  };
  EXPECT_NEAR(taken(2e9), 3.0 * 4 * (64 << 20), 1e4);
  EXPECT_NEAR(taken(1e8), 1e8, 1e4);
}

}  // namespace
}  // namespace sibyl

#include "profiler/torch/read_sweep.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sibyl {
namespace {

constexpr double kib = 1024;

TEST(ReadSweep, times_a_pass_over_each_working_set) {
  const std::vector<Bytes> sizes{Bytes{64 * kib}, Bytes{256 * kib}, Bytes{16384 * kib}};
  const std::vector<ReadSample> sweep = read_sweep(sizes, 1, [] {});
  ASSERT_EQ(sweep.size(), 3U);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(sweep[i].bytes, sizes[i]) << "in ascending order";
    const double rate = (sweep[i].bytes / sweep[i].time).value();
    EXPECT_GT(rate, 1e8) << i;
    EXPECT_LT(rate, 1e12) << i << ": a line in less than a fifth of a cycle was not read";
  }
  EXPECT_GT(sweep[2].time, 8.0 * sweep[1].time) << "64 times as much";
}

// A barrier before each reading, the same number of times on every rank.
TEST(ReadSweep, waits_for_the_others_before_each_reading) {
  int calls = 0;
  read_sweep(std::vector<Bytes>{Bytes{64 * kib}, Bytes{128 * kib}}, 1, [&] { ++calls; });
  EXPECT_EQ(calls, 2 * 3);
}

TEST(ReadSweep, threads_share_the_working_set) {
  const std::vector<ReadSample> sweep = read_sweep(std::vector<Bytes>{Bytes{1024 * kib}}, 3, [] {});
  ASSERT_EQ(sweep.size(), 1U);
  EXPECT_TRUE(std::isfinite(sweep[0].time.value()));
  EXPECT_GT(sweep[0].time.value(), 0);
}

TEST(ReadSweep, of_nothing_is_nothing) {
  EXPECT_TRUE(read_sweep({}, 1, [] {}).empty());
}

}  // namespace
}  // namespace sibyl

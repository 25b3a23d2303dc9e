// Sweeps written by hand: what a core was found to have of a cache.
#include "profiler/cache.h"

#include <gtest/gtest.h>

#include <utility>

namespace sibyl {
namespace {

constexpr double mib = 1024 * 1024;

// Working sets in MiB, read at so many GB/s.
std::vector<ReadSample> sweep(const std::vector<std::pair<double, double>>& rates) {
  std::vector<ReadSample> samples;
  for (const auto& [size, rate] : rates)
    samples.push_back({Bytes{size * mib}, Bytes{size * mib} / BytesPerSecond{rate * 1e9}});
  return samples;
}

double found(const std::vector<std::pair<double, double>>& rates, double reported) {
  return effective_cache(sweep(rates), Bytes{reported * mib}).value() / mib;
}

TEST(Cache, ends_where_reading_falls_to_the_memorys_rate) {
  EXPECT_EQ(found({{4, 40}, {8, 40}, {16, 40}, {32, 12}, {64, 12}}, 32), 16);
}

TEST(Cache, of_several_levels_the_last_counts) {
  // 2 MiB of a core's own, 64 MiB shared, then memory.
  EXPECT_EQ(found({{1, 90}, {2, 88}, {4, 31}, {16, 30}, {32, 30}, {64, 29}, {128, 13}, {256, 12}}, 128), 64);
}

// As seen on a virtual machine of two cores which reports a whole socket's 480 MiB.
TEST(Cache, of_a_core_among_many_is_a_fraction_of_what_is_reported) {
  EXPECT_EQ(found({{1, 60},
                   {2, 45},
                   {4, 29},
                   {8, 28},
                   {16, 28},
                   {32, 28},
                   {64, 14},
                   {128, 14},
                   {256, 13},
                   {512, 12.5},
                   {960, 12}},
                  480),
            32);
}

TEST(Cache, is_never_more_than_is_reported) {
  // The step to memory's rate lies between 32 and 64 MiB; 48 are reported.
  EXPECT_EQ(found({{16, 40}, {32, 40}, {64, 20}, {96, 12}}, 48), 48);
  EXPECT_EQ(found({{16, 40}, {32, 39}, {64, 38}, {128, 12}}, 48), 48);
}

TEST(OutOfCache, is_past_what_is_left_and_what_is_reported) {
  EXPECT_EQ(out_of_cache(Bytes{32}, Bytes{32}), Bytes{64});
  EXPECT_EQ(out_of_cache(Bytes{64}, Bytes{480}), Bytes{480});
}

TEST(Cache, is_found_in_spite_of_noise) {
  // A tenth up and down, and a pass of 8 MiB that was disturbed: what is smaller than a cached set is cached, too.
  EXPECT_EQ(found({{2, 31}, {4, 27}, {8, 9}, {16, 30}, {32, 25.5}, {64, 13.1}, {128, 11}, {256, 13}, {512, 12}}, 256),
            32);
}

TEST(Cache, rates_within_the_margin_of_the_memorys_are_the_memorys) {
  EXPECT_EQ(found({{8, 30}, {16, 12.4}, {32, 10}}, 16), 8);
  EXPECT_EQ(found({{8, 30}, {16, 12.6}, {32, 10}}, 16), 16);
}

TEST(Cache, is_what_is_reported_where_no_knee_is_seen) {
  EXPECT_EQ(found({{8, 12.1}, {16, 12}, {32, 11.9}, {64, 12}}, 32), 32);
  EXPECT_EQ(found({{8, 9}, {16, 10}, {32, 11}, {64, 12}}, 32), 32);
}

TEST(Cache, is_what_is_reported_where_memory_was_not_read) {
  EXPECT_EQ(found({}, 32), 32);
  EXPECT_EQ(found({{8, 40}, {16, 12}, {32, 12}}, 32), 32);
}

TEST(Cache, does_not_depend_on_the_order_of_the_samples) {
  EXPECT_EQ(found({{64, 12}, {4, 40}, {32, 12}, {16, 40}, {8, 40}}, 32), 16);
}

TEST(WorkingSets, double_up_to_twice_what_is_reported) {
  const std::vector<Bytes> sizes = working_sets(Bytes{480 * mib});
  EXPECT_EQ(sizes.front(), Bytes{mib / 4});
  for (std::size_t i = 1; i + 1 < sizes.size(); ++i) EXPECT_EQ(sizes[i], 2.0 * sizes[i - 1]);
  EXPECT_EQ(sizes[sizes.size() - 2], Bytes{512 * mib});
  EXPECT_EQ(sizes.back(), Bytes{960 * mib});
}

TEST(WorkingSets, hold_twice_a_power_of_two_once) {
  const std::vector<Bytes> sizes = working_sets(Bytes{mib});
  EXPECT_EQ(sizes, (std::vector<Bytes>{Bytes{mib / 4}, Bytes{mib / 2}, Bytes{mib}, Bytes{2 * mib}}));
}

}  // namespace
}  // namespace sibyl

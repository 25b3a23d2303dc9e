#include "profiler/torch/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace sibyl {
namespace {

TimingOptions options_with_cache(double bytes) {
  TimingOptions options;
  options.cache = Bytes{bytes};
  options.budget = Seconds{0.0};  // as few laps as allowed: no test waits
  options.faults = [] { return std::int64_t{0}; };
  return options;
}

TEST(Rotation, small_operands_are_padded_to_more_than_twice_the_cache) {
  // 16 copies (the most) of 1 kB touch 16 kB; padding must make up what lacks to 2 x 1 MB.
  const Rotation r = plan_rotation(Bytes{1e3}, options_with_cache(1e6));
  EXPECT_EQ(r.copies, 16);
  EXPECT_GT(r.lap.value(), 2e6);
  EXPECT_NEAR(r.padding.value(), 2e6 / 16 - 1e3, 1.0);
}

TEST(Rotation, copies_alone_suffice_where_they_are_large) {
  // ceil(2 MB / 0.3 MB) = 7 copies are 2.1 MB: no padding.
  const Rotation r = plan_rotation(Bytes{3e5}, options_with_cache(1e6));
  EXPECT_EQ(r.copies, 7);
  EXPECT_EQ(r.padding.value(), 0.0);
  EXPECT_DOUBLE_EQ(r.lap.value(), 2.1e6);
}

TEST(Rotation, operands_beyond_twice_the_cache_need_no_second_copy) {
  EXPECT_EQ(plan_rotation(Bytes{5e6}, options_with_cache(1e6)).copies, 1);
}

TEST(Rotation, out_of_the_cache_is_one_copy_and_nothing_between) {
  TimingOptions options = options_with_cache(1e6);
  options.cached = true;
  const Rotation r = plan_rotation(Bytes{1e3}, options);
  EXPECT_EQ(r.copies, 1);
  EXPECT_EQ(r.padding.value(), 0.0);
  EXPECT_EQ(r.lap.value(), 1e3);
}

TEST(Rotation, memory_bounds_copies_and_padding_makes_up) {
  TimingOptions options = options_with_cache(1e6);
  options.most_memory = Bytes{6e5};
  const Rotation r = plan_rotation(Bytes{3e5}, options);
  EXPECT_EQ(r.copies, 2);
  EXPECT_GT(r.lap.value(), 2e6);
}

TEST(Statistics, the_median_is_known_when_the_order_statistics_around_it_agree) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(1.0 + 1e-4 * i);
  // Order statistics 40 and 60 of 100: 20e-4 apart, below 2 x 1 % but above 2 x 0.05 %.
  EXPECT_TRUE(median_is_known(values, 0.01));
  EXPECT_FALSE(median_is_known(values, 0.0005));
  EXPECT_FALSE(median_is_known(std::vector<double>(5, 1.0), 0.01)) << "five values enclose no median with 95 %";
  EXPECT_TRUE(median_is_known(std::vector<double>(6, 1.0), 0.01));
}

TEST(TimeLaps, the_first_lap_warms_up_and_is_not_counted) {
  int calls = 0;
  const TimedWork work{{}, [&](int) { return ++calls <= 3 ? 100.0 : 1.0; }};
  const auto times = time_laps(work, Rotation{3, {}, {}}, options_with_cache(1));
  ASSERT_TRUE(times);
  EXPECT_THAT(*times, testing::Each(1.0));
  EXPECT_EQ(times->size(), 6U) << "two laps of three make at least five runs";
}

// Runs 1 to 7 fault: laps of three warm up until the third is over, in which runs 8 and 9 would have been well.
TEST(TimeLaps, warms_up_until_a_lap_does_not_page_fault) {
  int calls = 0;
  TimingOptions options = options_with_cache(1);
  options.faults = [&] { return std::int64_t{std::min(calls, 7)}; };
  const TimedWork work{{}, [&](int) { return ++calls <= 12 ? 100.0 : 1.0; }};
  const auto times = time_laps(work, Rotation{3, {}, {}}, options);
  ASSERT_TRUE(times);
  EXPECT_EQ(calls, 9 + 3 + 6) << "three laps that fault in part, one that does not, two that count";
  EXPECT_THAT(*times, testing::Each(1.0));
}

TEST(TimeLaps, runs_that_page_fault_do_not_count) {
  int calls = 0;
  std::int64_t faults = 0;
  TimingOptions options = options_with_cache(1);
  options.faults = [&] { return faults; };
  // The first lap is well; from then on every other run faults and takes long.
  const TimedWork work{{}, [&](int) { return ++calls > 1 && calls % 2 == 0 ? ++faults, 100.0 : 1.0; }};
  const auto times = time_laps(work, Rotation{}, options);
  ASSERT_TRUE(times);
  EXPECT_THAT(*times, testing::ElementsAre(1.0, 1.0, 1.0, 1.0, 1.0));
}

// Some kernels take new memory each time: what they take is then what they take.
TEST(TimeLaps, runs_that_all_page_fault_count) {
  std::int64_t faults = 0;
  TimingOptions options = options_with_cache(1);
  options.faults = [&] { return faults; };
  const auto times = time_laps({{}, [&](int) { return ++faults, 2.0; }}, Rotation{}, options);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->size(), 20U) << "four times the least number of runs were tried";
}

TEST(TimeLaps, counts_the_faults_of_this_process) {
  const std::int64_t before = page_faults();
  std::vector<char> fresh(64 << 20, 1);
  EXPECT_GT(page_faults() - before + fresh[0], 16);  // with pages of 4 MiB, or smaller
}

TEST(TimeLaps, others_run_before_each_run) {
  std::string order;
  TimedWork work{[&] { order += '|'; }, [&](int) { return order += 'm', 1.0; }};
  work.others = [&] { order += 'o'; };
  ASSERT_TRUE(time_laps(work, Rotation{3, {}, {}}, options_with_cache(1)));
  EXPECT_EQ(order, "|omomom|omomom|omomom");  // a lap to warm up, two that count
}

TEST(TimeLaps, copies_take_turns) {
  std::vector<int> order;
  const TimedWork work{{}, [&](int copy) { return order.push_back(copy), 1.0; }};
  ASSERT_TRUE(time_laps(work, Rotation{2, {}, {}}, options_with_cache(1)));
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int>(i % 2));
}

TEST(TimeLaps, goes_on_while_another_rank_does_not_know_its_median) {
  int votes = 0;
  TimingOptions options = options_with_cache(1);
  options.agree = [&](Vote) { return ++votes < 50 ? Vote::more : Vote::done; };
  const auto times = time_laps({{}, [](int) { return 1.0; }}, Rotation{}, options);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->size(), 49U);
}

TEST(TimeLaps, votes_failure_instead_of_leaving_the_others_at_the_barrier) {
  std::vector<Vote> votes;
  TimingOptions options = options_with_cache(1);
  options.agree = [&](Vote vote) { return votes.push_back(vote), vote; };
  const auto times =
      time_laps({{}, [](int) -> double { throw std::runtime_error("no such kernel"); }}, Rotation{}, options);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().message, "no such kernel");
  EXPECT_THAT(votes, testing::ElementsAre(Vote::failed));
}

TEST(TimeLaps, a_failure_elsewhere_is_a_failure_here) {
  TimingOptions options = options_with_cache(1);
  options.agree = [](Vote) { return Vote::failed; };
  EXPECT_FALSE(time_laps({{}, [](int) { return 1.0; }}, Rotation{}, options));
}

TEST(Machine, has_a_last_level_cache) { EXPECT_GT(last_level_cache().value(), 1e5); }

}  // namespace
}  // namespace sibyl

#include "profiler/torch/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace sibyl {
namespace {

TimingOptions no_waiting() {
  TimingOptions options;
  options.budget = Seconds{0.0};  // as few laps as allowed: no test waits
  options.faults = [] { return std::int64_t{0}; };
  return options;
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
  const TimedWork work{{}, [&] { return ++calls <= 3 ? 100.0 : 1.0; }};
  const std::vector<TimedWork> works(3, work);
  for (const auto& times : time_laps(works, no_waiting())) {
    ASSERT_TRUE(times);
    EXPECT_THAT(*times, testing::ElementsAre(1.0, 1.0, 1.0, 1.0, 1.0)) << "at least five";
  }
  EXPECT_EQ(calls, 6 * 3);
}

// Runs 1 to 7 fault: laps of three warm up until the third is over, in which runs 8 and 9 would have been well.
TEST(TimeLaps, warms_up_until_a_lap_does_not_page_fault) {
  int calls = 0;
  TimingOptions options = no_waiting();
  options.faults = [&] { return std::int64_t{std::min(calls, 7)}; };
  const TimedWork work{{}, [&] { return ++calls <= 12 ? 100.0 : 1.0; }};
  const std::vector<TimedWork> works(3, work);
  for (const auto& times : time_laps(works, options)) {
    ASSERT_TRUE(times);
    EXPECT_THAT(*times, testing::Each(1.0));
  }
  EXPECT_EQ(calls, 9 + 3 + 5 * 3) << "three laps that fault in part, one that does not, five that count";
}

TEST(TimeLaps, runs_that_page_fault_do_not_count) {
  int calls = 0;
  std::int64_t faults = 0;
  TimingOptions options = no_waiting();
  options.faults = [&] { return faults; };
  // The first lap is well; from then on every other run faults and takes long.
  const TimedWork work{{}, [&] { return ++calls > 1 && calls % 2 == 0 ? ++faults, 100.0 : 1.0; }};
  const auto times = time_work(work, options);
  ASSERT_TRUE(times);
  EXPECT_THAT(*times, testing::ElementsAre(1.0, 1.0, 1.0, 1.0, 1.0));
}

// Some kernels take new memory each time: what they take is then what they take.
TEST(TimeLaps, runs_that_all_page_fault_count) {
  std::int64_t faults = 0;
  TimingOptions options = no_waiting();
  options.faults = [&] { return faults; };
  const auto times = time_work({{}, [&] { return ++faults, 2.0; }}, options);
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
  TimedWork work{[&] { order += '|'; }, [&] { return order += 'm', 1.0; }};
  work.others = [&] { order += 'o'; };
  const std::vector<TimedWork> works(2, work);
  for (const auto& times : time_laps(works, no_waiting())) EXPECT_TRUE(times);
  EXPECT_EQ(order, "||omom||omom||omom||omom||omom||omom");  // a lap to warm up, five that count
}

// So that each comes back after all others, which a step's allocations do, too; not in the order of the keys, in which
// like follows like.
TEST(TimeLaps, works_take_turns_in_an_order_that_stays) {
  std::vector<int> order;
  std::vector<TimedWork> works;
  constexpr int count = 9;
  for (int i = 0; i < count; ++i) works.push_back({{}, [&order, i] { return order.push_back(i), 1.0 + i; }});
  const auto times = time_laps(works, no_waiting());
  ASSERT_EQ(order.size(), 6U * count);
  for (std::size_t i = count; i < order.size(); ++i) EXPECT_EQ(order[i], order[i - count]);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.begin() + count));
  for (int i = 0; i < count; ++i) EXPECT_THAT(*times[static_cast<std::size_t>(i)], testing::Each(1.0 + i));
}

double resident() {
  std::ifstream statm("/proc/self/statm");
  double all = 0, now = 0;
  statm >> all >> now;
  return now * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Seen by the memory of the buffer: what works lack to a lap, as far as memory allows.
TEST(TimeLaps, a_buffer_makes_up_what_works_do_not_touch) {
  const auto taken = [](Bytes lap, Bytes touches, Bytes holds, Bytes most) {
    TimingOptions options = no_waiting();
    options.lap = lap;
    options.most_memory = most;
    double most_seen = 0;
    const double before = resident();
    const auto measure = [&] { return most_seen = std::max(most_seen, resident() - before), 1.0; };
    EXPECT_TRUE(time_work({{}, measure, {}, touches, holds}, options));
    return most_seen;
  };
  constexpr Bytes none{0}, all{256e6};
  EXPECT_NEAR(taken(all, none, none, all), 256e6, 20e6);
  EXPECT_NEAR(taken(all, Bytes{100e6}, none, all), 156e6, 20e6);
  EXPECT_LT(taken(all, all, none, all), 20e6);
  EXPECT_NEAR(taken(all, none, Bytes{200e6}, all), 56e6, 20e6) << "memory is for operands, too";
}

// So that what forward saved is as cold when backward reads it as all that ran since can make it.
TEST(TimeLaps, laps_begin_in_the_order_of_turns) {
  std::vector<int> begun, run;
  std::vector<TimedWork> works;
  for (int i = 0; i < 9; ++i)
    works.push_back({[&begun, i] { begun.push_back(i); }, [&run, i] { return run.push_back(i), 1.0; }});
  for (const auto& times : time_laps(works, no_waiting())) EXPECT_TRUE(times);
  EXPECT_EQ(begun, run);
}

// A budget of a day, and times that never agree; who does not hear that it is in a hurry ends, too.
TEST(TimeLaps, the_least_runs_are_enough_in_a_hurry) {
  TimingOptions options = no_waiting();
  options.budget = Seconds{86400};
  int calls = 0;
  options.agree = [&](Vote vote) { return calls > 100 ? Vote::done : vote; };
  const auto runs = [&] {
    const auto times = time_work({{}, [&] { return 1.0 + ++calls; }}, options);
    return times ? times->size() : 0;
  };
  options.in_a_hurry = [&] { return calls > 8; };
  EXPECT_EQ(runs(), 8U);
  options.in_a_hurry = [] { return true; };
  EXPECT_EQ(runs(), 5U);
}

// Another rank, which would go on for ever, or which lacks runs.
TEST(TimeLaps, a_hurry_holds_for_all_ranks_but_not_before_the_least_runs) {
  TimingOptions options = no_waiting();
  options.in_a_hurry = [] { return true; };
  int votes = 0;
  options.agree = [&](Vote vote) { return ++votes > 100 ? Vote::done : std::max(vote, Vote::more); };
  const auto times = time_work({{}, [] { return 1.0; }}, options);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->size(), 5U);
  votes = 0;
  options.agree = [&](Vote vote) { return ++votes < 20 ? std::max(vote, Vote::least) : vote; };
  EXPECT_EQ(time_work({{}, [] { return 1.0; }}, options)->size(), 19U);
}

TEST(TimeLaps, one_that_fails_does_not_stop_the_others) {
  std::vector<TimedWork> works(3, TimedWork{{}, [] { return 1.0; }});
  works[1].measure = []() -> double { throw std::runtime_error("no such kernel"); };
  const auto times = time_laps(works, no_waiting());
  EXPECT_TRUE(times[0] && times[2]);
  ASSERT_FALSE(times[1]);
  EXPECT_EQ(times[1].error().message, "no such kernel");
}

TEST(TimeLaps, goes_on_while_another_rank_does_not_know_its_median) {
  int votes = 0;
  TimingOptions options = no_waiting();
  options.agree = [&](Vote) { return ++votes < 50 ? Vote::more : Vote::done; };
  const auto times = time_work({{}, [] { return 1.0; }}, options);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->size(), 49U);
}

// Other ranks wait for its vote: that it is done, as the one work here has failed, and then that it has.
TEST(TimeLaps, votes_failure_instead_of_leaving_the_others_at_the_barrier) {
  std::vector<Vote> votes;
  TimingOptions options = no_waiting();
  options.agree = [&](Vote vote) { return votes.push_back(vote), vote; };
  const auto times = time_work({{}, []() -> double { throw std::runtime_error("no such kernel"); }}, options);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().message, "no such kernel");
  EXPECT_THAT(votes, testing::ElementsAre(Vote::done, Vote::failed));
}

TEST(TimeLaps, a_failure_elsewhere_is_a_failure_here) {
  TimingOptions options = no_waiting();
  int votes = 0;
  options.agree = [&](Vote) { return ++votes == 1 ? Vote::done : Vote::failed; };
  EXPECT_FALSE(time_work({{}, [] { return 1.0; }}, options));
}

TEST(Machine, has_a_last_level_cache) { EXPECT_GT(last_level_cache().value(), 1e5); }

}  // namespace
}  // namespace sibyl

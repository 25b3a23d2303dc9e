// What a search finds, and what it says of that.
#include "oracle/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <tuple>

#include "oracle/axes.h"
#include "oracle/closed/first_answer.h"
#include "oracle/predict.h"
#include "oracle/report/search_report.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/search_space.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using testing::HasSubstr;
using testing::Not;

class Searching : public testing::Test {
 protected:
  // Wide enough that splitting pays.
  Graph graph_ = test::mlp({256, 1024, 1024, 1024, 16}, 1);
  Cluster cluster_ = test::cluster(1, 4, BytesPerSecond{1e10});
};

// Two ranks can share an image by its columns or its rows, and a volume by its slices, too.
TEST_F(Searching, VolumesAreSplitAlongTheirDepthToo) {
  SearchSpace s = test::space(2, 2);
  ASSERT_TRUE(parse_axes("spatial", s).has_value());
  s.zero = {0}, s.recompute = {Recompute::none}, s.micro_batches = {};
  const SearchResult flat = search(test::zoo("small-cnn", 2), s, cluster_).value();
  EXPECT_EQ(flat.size, 2U);
  const SearchResult volumes = search(test::zoo("cosmoflow", 2), s, cluster_).value();
  EXPECT_EQ(volumes.size, 3U);
  EXPECT_THAT(volumes.left_out, testing::IsEmpty());
  std::vector<std::string> found;
  for (const Candidate& c : volumes.best) found.push_back(strategy_words(c.strategy));
  EXPECT_THAT(found, testing::Contains("--parallel data=1,spatial=2x1x1"));
}

// Against predicting each strategy by hand.
TEST_F(Searching, TheBestIsTheFastestOfAllThatFit) {
  const SearchSpace s = test::space(4, 64);
  const SearchResult result = search(graph_, s, cluster_, {.keep = 5}).value();
  std::set<std::pair<double, double>> different;  // time and memory
  std::size_t fitting = 0, refused = 0;
  for (const Strategy& strategy : strategies(s)) {
    const auto p = predict(graph_, strategy, cluster_);
    refused += p ? 0 : 1;
    if (!p || !p->fits) continue;
    ++fitting;
    different.insert({p->step_time.value(), p->memory.needed().value()});
  }
  EXPECT_EQ(result.size, strategies(s).size());
  EXPECT_EQ(result.tried, result.size);
  EXPECT_LE(result.fitting, fitting);
  EXPECT_GE(result.fitting + result.too_slow, fitting);
  ASSERT_EQ(result.best.size(), 5U);
  auto expected = different.begin();
  for (const Candidate& c : result.best) {
    EXPECT_EQ(c.step_time.value(), expected->first);
    EXPECT_EQ(c.memory.value(), (expected++)->second);
  }
  std::size_t left_out = 0;
  for (const LeftOut& reason : result.left_out) left_out += reason.count;
  EXPECT_LE(left_out, refused);
  EXPECT_EQ(result.fitting + result.too_large + result.too_slow + left_out, result.size);
}

// In the words of a refusal, with its numbers. LeNet's images have 28 rows and 28 columns.
TEST_F(Searching, WhatCannotBeSplitIsSaidAsTheFirstWasRefused) {
  SearchSpace s = test::space(8, 8);
  ASSERT_TRUE(parse_axes("spatial", s).has_value());
  s.zero = {0}, s.recompute = {Recompute::none}, s.micro_batches = {};
  const Cluster cluster = test::cluster(1, 32, BytesPerSecond{1e10});
  const auto left_out = [&] {
    std::vector<std::tuple<std::string, std::size_t, std::size_t>> found;
    const SearchResult result = search(test::zoo("lenet", 8), s, cluster).value();
    for (const LeftOut& reason : result.left_out)
      found.emplace_back(reason.why, reason.count, reason.alike);
    return found;
  };
  const std::string rows = "'input' has a height of 28, which cannot be divided into 8 equal parts",
                    columns = "'input' has a width of 28, which cannot be divided into 8 equal parts";
  EXPECT_THAT(left_out(), testing::UnorderedElementsAre(std::tuple(rows, 1U, 0U), std::tuple(columns, 1U, 0U)));
  // Of sixteen and thirty-two parts, too: the same but for numbers.
  s.devices = {8, 16, 32};
  std::size_t counted = 0;
  for (const auto& [why, count, alike] : left_out()) {
    EXPECT_THAT(why, testing::ContainsRegex("has a (height|width) of (28|14|7), which cannot be divided into 8 equal"));
    EXPECT_EQ(alike, 2U);
    counted += count;
  }
  EXPECT_GT(counted, 4U);
}

// Of what lies outside each that is shown was simulated, with its copies.
TEST_F(Searching, ShowsTheCopiesOfWhatIsOffloaded) {
  SearchSpace s = test::space(4, 64);
  s.fixed.optimizer = OptimizerKind::adam;
  s.fixed.optimizer_tier = Tier::host;
  const SearchResult result = search(graph_, s, cluster_).value();
  EXPECT_LT(result.simulated, result.by_formula);
  ASSERT_FALSE(result.best.empty());
  for (const Candidate& c : result.best) {
    EXPECT_EQ(c.step_time, predict(graph_, c.strategy, cluster_)->step_time);
    EXPECT_GT(c.breakdown.offload_total, Seconds{});
    EXPECT_THAT(strategy_words(c.strategy), HasSubstr("--offload optimizer")) << "the command leaves it to the words";
  }
}

TEST_F(Searching, IsTheSameOnAnyNumberOfThreads) {
  const SearchSpace s = test::space(4, 16);
  const auto json = [&](unsigned threads) {
    return to_json(SearchReport{"m", "c", "sibyl predict m", search(graph_, s, cluster_, {.threads = threads}).value()});
  };
  EXPECT_EQ(json(1), json(3));
  EXPECT_THAT(json(1), Not(HasSubstr("\"too_slow\": 0,"))) << "what is ruled out must not depend on threads either";
}

TEST_F(Searching, NamesEqualWhatIntervalsDoNotTellApartAndRecommendsTheSimplestThatIsAsGood) {
  const SearchResult result = search(graph_, test::space(4, 64), cluster_, {.keep = 100000}).value();
  ASSERT_LE(result.best.size(), result.fitting);
  const Candidate& fastest = result.best.front();
  const Seconds most = fastest.step_time * (1 + worth_of_simplicity);
  std::size_t equal = 0;
  for (const Candidate& c : result.best) {
    const Seconds unsure = deviation_of_difference(c.error, fastest.error) * ninety_percent;
    EXPECT_EQ(c.equal, c.step_time - fastest.step_time <= std::max(unsure, fastest.step_time * 0.005));
    equal += c.equal ? 1 : 0;
    EXPECT_TRUE(!c.equal || c.step_time > most || complexity(c.strategy) >= complexity(result.recommended.strategy));
  }
  EXPECT_EQ(result.equal, equal);
  EXPECT_TRUE(result.recommended.equal);
  EXPECT_LE(result.recommended.step_time, most);
}

// An MLP has no attention to compute again.
TEST_F(Searching, OfStrategiesThatComeOutTheSameTheSimplestStandsForAll) {
  SearchSpace s = test::space(4, 64);
  const auto count = [&] { return search(graph_, s, cluster_, {.keep = 100000}).value().best.size(); };
  s.recompute = {Recompute::none};
  const std::size_t without = count();
  s.recompute = {Recompute::selective, Recompute::none};
  EXPECT_EQ(count(), without);
  const SearchResult result = search(graph_, s, cluster_).value();
  for (const Candidate& c : result.best) EXPECT_EQ(c.strategy.recompute, Recompute::none);
}

TEST_F(Searching, TheFrontIsWhatNothingBeats) {
  SearchSpace s = test::space(4, 64);
  s.devices = {1, 2, 4};
  const SearchResult result = search(graph_, s, cluster_, {.keep = 100000}).value();
  const auto beats = [](const Candidate& a, const Candidate& b) {
    return a.step_time <= b.step_time && a.memory <= b.memory && a.strategy.devices() <= b.strategy.devices() &&
           (a.step_time < b.step_time || a.memory < b.memory || a.strategy.devices() < b.strategy.devices());
  };
  ASSERT_FALSE(result.front.empty());
  for (const Candidate& kept : result.front)
    for (const Candidate& other : result.best) EXPECT_FALSE(beats(other, kept)) << strategy_words(kept.strategy);
  for (const Candidate& other : result.best) {
    const Candidate& fastest = result.best.front();
    if (other.step_time * other.strategy.devices() > most_device_time * fastest.step_time * fastest.strategy.devices())
      continue;
    const bool on_front = std::ranges::any_of(result.front, [&](const Candidate& kept) {
      return kept.step_time <= other.step_time && kept.memory <= (1 + negligible_memory) * other.memory &&
             kept.strategy.devices() <= other.strategy.devices();
    });
    EXPECT_TRUE(on_front);
  }
}

// Less memory never finds a faster one, and what is found keeps within it.
TEST_F(Searching, KeepsWithinMemory) {
  const SearchSpace s = test::space(4, 64);
  const SearchResult all = search(graph_, s, cluster_).value();
  const Bytes limit = all.front.back().memory * 1.5;
  const SearchResult some = search(graph_, s, cluster_, {.keep = 100000, .memory = limit}).value();
  ASSERT_FALSE(some.best.empty());
  EXPECT_LT(some.fitting, all.fitting);
  EXPECT_GE(some.best.front().step_time, all.best.front().step_time);
  for (const Candidate& c : some.best) EXPECT_LE(c.memory, limit);
  const SearchResult none = search(graph_, s, cluster_, {.memory = Bytes{1000}}).value();
  EXPECT_EQ(none.fitting, 0U);
  EXPECT_GT(none.too_large, 0U);
}

TEST_F(Searching, CancelledSaysWhatWasFoundByThen) {
  std::atomic<int> asked{0};
  const SearchResult result =
      search(graph_, test::space(4, 64), cluster_, {.threads = 1, .cancelled = [&] { return ++asked > 20; }}).value();
  EXPECT_LE(result.tried, 20U);
  EXPECT_LT(result.tried, result.size);
  EXPECT_THAT(to_text(SearchReport{"m", "c", "sibyl predict m", result}, {}), HasSubstr(" tried before it was cancelled"));
}

// Simulating takes longer than pricing by formula: it ends as well.
TEST_F(Searching, CancelledWhileSimulatingEndsSoon) {
  bool priced = false;
  const SearchResult result = search(graph_, test::space(4, 64), cluster_,
                                     {.keep = 100000,
                                      .threads = 1,
                                      .progress = [&](std::size_t done, std::size_t of) { priced = done == of; },
                                      .cancelled = [&] { return priced; }})
                                  .value();
  EXPECT_EQ(result.tried, result.size);
  EXPECT_LE(result.simulated, 32U);
  EXPECT_FALSE(result.best.empty());
  // What is shown is not known to be the best: though all were tried, it is said.
  EXPECT_TRUE(result.cancelled);
  EXPECT_TRUE(result.recommended.bottleneck.name.empty());  // nothing more was asked
  EXPECT_THAT(to_text(SearchReport{"m", "c", "sibyl predict m", result}, {}), HasSubstr(" cancelled before all "));
}

TEST_F(Searching, ProgressReachesTheEnd) {
  std::size_t last = 0, total = 0;
  const SearchSpace s = test::space(2, 4);
  ASSERT_TRUE(search(graph_, s, cluster_, {.progress = [&](std::size_t done, std::size_t of) { last = done, total = of; }}));
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, strategies(s).size());
}

TEST(SearchExcess, IsThePartThatIsTheMostLonger) {
  Candidate a, b;
  a.breakdown.forward = Seconds{2}, a.breakdown.bubble = Seconds{1};
  b.breakdown.forward = Seconds{1.5}, b.breakdown.communication_exposed = Seconds{3};
  EXPECT_EQ(excess_over(a, b).part, "bubble");
  EXPECT_EQ(excess_over(a, b).time, Seconds{1});
  EXPECT_EQ(excess_over(b, a).part, "exposed communication");
  EXPECT_EQ(excess_over(a, a).time, Seconds{0});
}

// One that was asked about other strategies before says what a new one says.
TEST(FirstAnswers, DependOnTheStrategyAlone) {
  const Graph graph = test::mlp({64, 64, 8}, 1);
  const Cluster cluster = test::cluster(1, 2);
  closed::FirstAnswers kept(graph, cluster);
  Strategy s;
  s.data = 2;
  for (const std::int64_t batch : {8, 8, 16, 16})
    for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adam})
      for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        s.global_batch = batch, s.optimizer = optimizer, s.precision = precision, s.clip = 1 - s.clip;
        const auto first = kept.of(s), fresh = closed::FirstAnswers(graph, cluster).of(s);
        ASSERT_TRUE(first && fresh);
        EXPECT_EQ(first->step_time, fresh->step_time);
        EXPECT_EQ(first->memory, fresh->memory);
        EXPECT_NEAR(first->step_time / predict(graph, s, cluster)->step_time, 1, 0.1);
      }
  s.framework = Framework::pytorch_ddp;
  EXPECT_FALSE(kept.of(s));  // there is no formula
  s.framework = Framework::sibyl, s.data = 4;
  EXPECT_FALSE(kept.of(s));  // there are two devices
}

TEST(SearchReport, SaysTheCommandThatPredictsTheRecommendedOne) {
  const Graph graph = test::mlp({64, 64, 8}, 1);
  const Cluster cluster = test::cluster(1, 2);
  const SearchReport report{"m.onnx", "test", "sibyl predict m.onnx --cluster=test --batch=8",
                            search(graph, test::space(2, 8), cluster).value()};
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("sibyl predict m.onnx --cluster=test --batch=8 " + strategy_words(report.result.recommended.strategy)));
  EXPECT_THAT(text, Not(HasSubstr("cancelled")));
  EXPECT_FALSE(report.result.cancelled);
  EXPECT_EQ(to_table(report).rows.size(), report.result.best.size());
}

// 36,000 samples are 4,500 steps of 8; a device-hour costs 3.
TEST(SearchReport, SaysWhatSamplesCostWhereTheyAreGiven) {
  const Graph graph = test::mlp({64, 64, 8}, 1);
  const Cluster cluster = test::cluster(1, 2);
  SearchReport report{"m.onnx", "test", "sibyl predict", search(graph, test::space(2, 8), cluster).value()};
  const std::size_t columns = to_table(report).columns.size();
  report.samples = 36'000;
  EXPECT_EQ(to_table(report).columns.size(), columns + 1);
  report.device_hour_price = 3;
  const Table table = to_table(report);
  ASSERT_EQ(table.columns.size(), columns + 2);
  const Candidate& best = report.result.best.front();
  const double hours = 4500 * best.step_time.value() * best.strategy.devices() / 3600;
  EXPECT_EQ(table.columns.back().key, "cost");
  EXPECT_NEAR(std::stod(table.rows.front()[columns].value), hours, 1e-12 * hours);
  EXPECT_NEAR(std::stod(table.rows.front()[columns + 1].value), 3 * hours, 1e-12 * hours);
  EXPECT_THAT(to_text(report, {}), testing::HasSubstr("device-hours"));
  EXPECT_THAT(to_json(report), testing::HasSubstr("\"cost\""));
  EXPECT_THAT(to_json(report), testing::Not(testing::HasSubstr("\"limits\"")));
  report.limits = {{"number of layers", "any \xff byte", 4, "layers", 0.5, "a deeper model"}};
  EXPECT_THAT(to_json(report), testing::HasSubstr("\"relief\": \"a deeper model\""));
  EXPECT_THAT(to_text(report, {}), testing::HasSubstr("Limits of the recommended"));
}

}  // namespace
}  // namespace sibyl

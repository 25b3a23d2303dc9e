// Which strategies are tried, and what is said of those that are.
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
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using testing::HasSubstr;
using testing::Not;

SearchSpace space(int devices, std::int64_t batch) {
  SearchSpace s;
  s.fixed.global_batch = batch;
  s.devices = {devices};
  return s;
}

std::set<std::string> words(const SearchSpace& s) {
  std::set<std::string> all;
  for (const Strategy& strategy : strategies(s)) EXPECT_TRUE(all.insert(strategy_words(strategy)).second) << strategy_words(strategy);
  return all;
}

// Two devices, two samples, nothing but meshes and micro-batches: data=2 with one sample each; tensor=2 with and without the sequence
// split, pipeline=2, each with both samples at once or one by one.
TEST(SearchSpace, HasEveryMeshAndMicroBatchOnce) {
  SearchSpace s = space(2, 2);
  s.zero = {0};
  s.recompute = {Recompute::none};
  s.schedules = {PipelineSchedule::one_forward_one_backward};
  EXPECT_THAT(words(s), testing::UnorderedElementsAre(
                            "--parallel data=2", "--parallel data=1,tensor=2", "--parallel data=1,tensor=2 --micro-batches 2",
                            "--parallel data=1,tensor=2,sequence=2", "--parallel data=1,tensor=2,sequence=2 --micro-batches 2",
                            "--parallel data=1,pipeline=2 --schedule 1f1b",
                            "--parallel data=1,pipeline=2 --micro-batches 2 --schedule 1f1b"));
}

// 12 devices: as many ordered factorisations into three as 12 = 2^2 x 3 has, C(4, 2) x C(3, 2) = 18.
TEST(SearchSpace, HasEveryFactorisation) {
  SearchSpace s = space(12, 12);
  s.zero = {0}, s.recompute = {Recompute::none}, s.sequence = false, s.micro_batches = {};
  s.schedules = {PipelineSchedule::gpipe};
  EXPECT_EQ(strategies(s).size(), 18U);
  for (const Strategy& strategy : strategies(s)) EXPECT_EQ(strategy.devices(), 12);
  s.data = false;
  EXPECT_EQ(strategies(s).size(), 6U);  // 12 has six divisors for two axes
}

// Two replicas of two stages of two tensor ranks, each in the usual order, with stages nearer than replicas, and with replicas
// nearest; of each four ways to exchange gradients. Where there are no replicas there is one of each.
TEST(SearchSpace, VariesOrdersAndBuckets) {
  SearchSpace s = space(8, 2);
  s.zero = {0}, s.recompute = {Recompute::none}, s.sequence = false, s.micro_batches = {};
  s.schedules = {PipelineSchedule::gpipe};
  ASSERT_TRUE(parse_varied("order,bucket", s).has_value());
  std::vector<std::string> of_the_mesh;
  std::size_t without_replicas = 0;
  for (const Strategy& strategy : strategies(s)) {
    const std::string text = strategy_words(strategy), mesh = "--parallel data=2,tensor=2,pipeline=2 --schedule gpipe";
    if (text.starts_with(mesh)) of_the_mesh.push_back(text.substr(mesh.size()));
    if (strategy.data == 1) ++without_replicas;
  }
  std::vector<std::string> expected;
  for (const std::string order : {"", " --order tensor,pipeline,data", " --order data,tensor,pipeline"})
    for (const std::string bucket : {"", " --bucket 5MiB", " --bucket 100MiB", " --no-overlap"}) expected.push_back(order + bucket);
  EXPECT_THAT(of_the_mesh, testing::UnorderedElementsAreArray(expected));
  EXPECT_EQ(without_replicas, 4U);  // tensor x pipeline = 8 x 1, 4 x 2, 2 x 4, 1 x 8
  EXPECT_EQ(parse_varied("order,speed", s).error().code, ErrorCode::usage);
  EXPECT_EQ(parse_varied("", s).error().code, ErrorCode::usage);
}

// Two replicas of two samples, whole or in two micro-batches: where these are several, and parts of gradients are held.
TEST(SearchSpace, VariesWhenGradientsAreReducedWhereAsked) {
  SearchSpace s = space(2, 4);
  s.zero = {0, 1, 2, 3}, s.recompute = {Recompute::none}, s.micro_batches = {1};
  ASSERT_TRUE(parse_axes("data,pipeline", s).has_value());
  s.schedules = {PipelineSchedule::one_forward_one_backward};
  const std::set<std::string> usual = words(s);
  ASSERT_TRUE(parse_varied("reduce", s).has_value());
  std::vector<std::string> varied(usual.begin(), usual.end());
  varied.emplace_back("--parallel data=2 --micro-batches 2 --zero 2 --reduce-each");
  varied.emplace_back("--parallel data=2 --micro-batches 2 --zero 3 --reduce-each");
  EXPECT_THAT(words(s), testing::UnorderedElementsAreArray(varied));
  s.reductions = false, s.fixed.reduce_each = true;  // as it has it, where it can be
  EXPECT_EQ(words(s).size(), usual.size());
  EXPECT_THAT(words(s), testing::IsSupersetOf({varied.back(), *usual.begin()}));
}

// Two replicas, with their state whole or shared: levels and chosen values where it is whole alone. One has nobody to send to.
TEST(SearchSpace, VariesTheFormOfGradientsWhereAsked) {
  SearchSpace s = space(2, 2);
  s.zero = {0, 1}, s.recompute = {Recompute::none}, s.micro_batches = {};
  ASSERT_TRUE(parse_axes("data,tensor", s).has_value());
  EXPECT_THAT(words(s), testing::UnorderedElementsAre("--parallel data=2", "--parallel data=2 --zero 1", "--parallel data=1,tensor=2"));
  ASSERT_TRUE(parse_varied("compress", s).has_value());
  EXPECT_THAT(words(s), testing::UnorderedElementsAre(
                            "--parallel data=2", "--parallel data=2 --compress bf16", "--parallel data=2 --compress 1bit",
                            "--parallel data=2 --compress 2bit", "--parallel data=2 --compress topk:0.01", "--parallel data=2 --zero 1",
                            "--parallel data=2 --zero 1 --compress bf16", "--parallel data=1,tensor=2"));
}

// One micro-batch on one device: what runs again, and where what it keeps lies. SGD keeps nothing that could lie
// elsewhere.
TEST(SearchSpace, VariesWhichBlocksRunAgainAndWhatLiesOutsideWhereAsked) {
  SearchSpace s = space(1, 1);
  s.recompute = {Recompute::none, Recompute::full};
  ASSERT_TRUE(parse_varied("recompute,offload", s).has_value());
  std::set<std::string> expected;
  for (const std::string again : {"full", "every:2", "every:3", "every:4"})
    for (const std::string offload : {"", " --offload activations"})
      expected.insert("--parallel data=1 --recompute " + again + offload);
  expected.insert("--parallel data=1");
  EXPECT_EQ(words(s), expected);
  s.fixed.optimizer = OptimizerKind::adam, s.recompute_every.clear();
  EXPECT_THAT(words(s),
              testing::UnorderedElementsAre("--parallel data=1", "--parallel data=1 --offload optimizer",
                                            "--parallel data=1 --recompute full",
                                            "--parallel data=1 --recompute full --offload optimizer",
                                            "--parallel data=1 --recompute full --offload activations",
                                            "--parallel data=1 --recompute full --offload optimizer,activations"));
  const std::vector<Strategy> all = strategies(s);
  EXPECT_LT(complexity(all.front()), complexity(all.back()));
}

// Two stages of two micro-batches; activations of a pipeline stay where they are.
TEST(SearchSpace, VariesSchedulesWhereAsked) {
  SearchSpace s = space(2, 2);
  s.axes = {MeshAxis::pipeline}, s.data = false, s.micro_batches = {1}, s.recompute = {Recompute::full};
  s.schedules = {PipelineSchedule::one_forward_one_backward};
  const std::size_t usual = strategies(s).size();
  ASSERT_TRUE(parse_varied("schedule,schedule,offload", s).has_value());
  EXPECT_EQ(strategies(s).size(), 2 * usual);
  EXPECT_THAT(words(s),
              testing::Contains("--parallel data=1,pipeline=2 --micro-batches 2 --schedule gpipe --recompute full"));
  EXPECT_THAT(varied_words(),
              testing::ElementsAre("order", "bucket", "compress", "reduce", "schedule", "recompute", "offload"));
}

// What a strategy runs again is searched: what one says of it by itself is not carried over.
TEST(SearchSpace, BeginsWithoutBlocksThatAreLeftOut) {
  SearchSpace s = space(1, 1);
  s.fixed.recompute = Recompute::full, s.fixed.recompute_every = 2;
  EXPECT_THAT(words(s), testing::UnorderedElementsAre("--parallel data=1", "--parallel data=1 --recompute selective",
                                                      "--parallel data=1 --recompute full"));
}

TEST(SearchSpace, SharesStateOnlyAmongReplicasAndInterleavesOnlyWholeRounds) {
  for (const Strategy& s : strategies(space(8, 16))) {
    EXPECT_TRUE(s.zero == 0 || s.data > 1);
    if (s.schedule == PipelineSchedule::interleaved) {
      EXPECT_GT(s.pipeline, 1);
      EXPECT_EQ(s.accumulation % s.pipeline, 0);
    }
    EXPECT_EQ(s.global_batch % (s.data * s.accumulation), 0);
  }
}

// Twelve layers on two devices: 2, 4 and 8 stages a device, and 3 and 6, which share them out evenly.
TEST(SearchSpace, InterleavesByWhatSharesLayersOutEvenly) {
  SearchSpace s = space(2, 2);
  s.axes = {MeshAxis::pipeline}, s.data = false, s.zero = {0}, s.recompute = {Recompute::none}, s.micro_batches = {1};
  const auto interleaved = [&] {
    std::set<int> chunks;
    for (const Strategy& one : strategies(s))
      if (one.schedule == PipelineSchedule::interleaved) chunks.insert(one.chunks);
    return chunks;
  };
  EXPECT_EQ(interleaved(), (std::set{2, 4, 8}));
  s.layers = 12;
  EXPECT_EQ(interleaved(), (std::set{2, 3, 4, 6, 8}));
  s.chunks = {5};
  EXPECT_EQ(interleaved(), (std::set{5}));
}

// Four devices, eight samples: an expert axis of two leaves two replicas, whose ranks have two samples each.
TEST(SearchSpace, RanksWithExpertsHaveSamplesOfTheirOwn) {
  SearchSpace s = space(4, 8);
  ASSERT_TRUE(parse_axes("data,expert", s));
  s.zero = {1}, s.recompute = {Recompute::none}, s.micro_batches = {1};
  EXPECT_THAT(words(s), testing::UnorderedElementsAre(
                            "--parallel data=4 --zero 1", "--parallel data=4 --micro-batches 2 --zero 1",
                            "--parallel data=2,expert=2 --zero 1", "--parallel data=2,expert=2 --micro-batches 2 --zero 1",
                            "--parallel data=1,expert=4 --zero 1", "--parallel data=1,expert=4 --micro-batches 2 --zero 1"));
}

TEST(SearchSpace, AxesAreReadByName) {
  SearchSpace s = space(4, 4);
  ASSERT_TRUE(parse_axes("data,spatial", s));
  EXPECT_TRUE(s.data);
  EXPECT_FALSE(s.sequence);
  EXPECT_THAT(s.axes, testing::ElementsAre(MeshAxis::width, MeshAxis::height, MeshAxis::depth));
  ASSERT_TRUE(parse_axes("context,expert", s));
  EXPECT_THAT(s.axes, testing::ElementsAre(MeshAxis::context, MeshAxis::expert));
  ASSERT_TRUE(parse_axes("sequence,tensor", s));
  EXPECT_FALSE(s.data);
  EXPECT_TRUE(s.sequence);
  EXPECT_THAT(s.axes, testing::ElementsAre(MeshAxis::tensor));
  EXPECT_THAT(parse_axes("data,time", s).error().message, HasSubstr("'time'"));
  EXPECT_THAT(parse_axes("data,depth", s).error().hint, HasSubstr("spatial")) << "those of images are said together";
  EXPECT_EQ(parse_axes("", s).error().code, ErrorCode::usage);
}

// A further row of axes.cpp is read everywhere, and counted where it belongs.
TEST(Axes, AreReadByTheNamesTheyHave) {
  EXPECT_THAT(axis_words(), testing::ElementsAre("tensor", "sequence", "filter", "channel", "spatial", "context",
                                                 "expert", "table", "data", "pipeline"));
  for (const std::string_view word : axis_words()) {
    Strategy strategy;
    SearchSpace searched;
    const std::string entry = std::string(word) + (word == "spatial" ? "=1x2" : "=2");
    EXPECT_TRUE(parse_parallel(entry, strategy).has_value()) << word;
    EXPECT_EQ(strategy.devices(), 2) << word;
    EXPECT_TRUE(parse_order(word, strategy).has_value()) << word;
    EXPECT_EQ(strategy.order, axes_said(word)) << word;
    ASSERT_TRUE(parse_axes(word, searched).has_value()) << word;
    if (word != "data") {
      EXPECT_EQ(searched.axes, axes_said(word)) << word;
    }
  }
  std::vector<MeshAxis> within = axes_within_samples();
  EXPECT_EQ(within.size(), 7U);
  within.insert(within.end(), {MeshAxis::expert, MeshAxis::table});
  EXPECT_EQ(within, axes_of_a_program());
}

class Searching : public testing::Test {
 protected:
  // Wide enough that splitting pays.
  Graph graph_ = test::mlp({256, 1024, 1024, 1024, 16}, 1);
  Cluster cluster_ = test::cluster(1, 4, BytesPerSecond{1e10});
};

// Two ranks can share an image by its columns or its rows, and a volume by its slices, too.
TEST_F(Searching, VolumesAreSplitAlongTheirDepthToo) {
  SearchSpace s = space(2, 2);
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
  const SearchSpace s = space(4, 64);
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
  SearchSpace s = space(8, 8);
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
  SearchSpace s = space(4, 64);
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
  const SearchSpace s = space(4, 16);
  const auto json = [&](unsigned threads) {
    return to_json(SearchReport{"m", "c", "sibyl predict m", search(graph_, s, cluster_, {.threads = threads}).value()});
  };
  EXPECT_EQ(json(1), json(3));
  EXPECT_THAT(json(1), Not(HasSubstr("\"too_slow\": 0,"))) << "what is ruled out must not depend on threads either";
}

TEST_F(Searching, NamesEqualWhatIntervalsDoNotTellApartAndRecommendsTheSimplestThatIsAsGood) {
  const SearchResult result = search(graph_, space(4, 64), cluster_, {.keep = 100000}).value();
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
  SearchSpace s = space(4, 64);
  const auto count = [&] { return search(graph_, s, cluster_, {.keep = 100000}).value().best.size(); };
  s.recompute = {Recompute::none};
  const std::size_t without = count();
  s.recompute = {Recompute::selective, Recompute::none};
  EXPECT_EQ(count(), without);
  const SearchResult result = search(graph_, s, cluster_).value();
  for (const Candidate& c : result.best) EXPECT_EQ(c.strategy.recompute, Recompute::none);
}

TEST_F(Searching, TheFrontIsWhatNothingBeats) {
  SearchSpace s = space(4, 64);
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
  const SearchSpace s = space(4, 64);
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
      search(graph_, space(4, 64), cluster_, {.threads = 1, .cancelled = [&] { return ++asked > 20; }}).value();
  EXPECT_LE(result.tried, 20U);
  EXPECT_LT(result.tried, result.size);
  EXPECT_THAT(to_text(SearchReport{"m", "c", "sibyl predict m", result}, {}), HasSubstr(" tried before it was cancelled"));
}

// Simulating takes longer than pricing by formula: it ends as well.
TEST_F(Searching, CancelledWhileSimulatingEndsSoon) {
  bool priced = false;
  const SearchResult result = search(graph_, space(4, 64), cluster_,
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
  const SearchSpace s = space(2, 4);
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
                            search(graph, space(2, 8), cluster).value()};
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
  SearchReport report{"m.onnx", "test", "sibyl predict", search(graph, space(2, 8), cluster).value()};
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

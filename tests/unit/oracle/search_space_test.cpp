// Which strategies a search tries.
#include "oracle/search/space.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "oracle/axes.h"
#include "tests/support/search_space.h"

namespace sibyl {
namespace {

using testing::HasSubstr;

std::set<std::string> words(const SearchSpace& s) {
  std::set<std::string> all;
  for (const Strategy& strategy : strategies(s))
    EXPECT_TRUE(all.insert(strategy_words(strategy)).second) << strategy_words(strategy);
  return all;
}

// Two devices, two samples, nothing but meshes and micro-batches: data=2 with one sample each; tensor=2 with and
// without the sequence split, pipeline=2, each with both samples at once or one by one.
TEST(SearchSpace, HasEveryMeshAndMicroBatchOnce) {
  SearchSpace s = test::space(2, 2);
  s.zero = {0};
  s.recompute = {Recompute::none};
  s.schedules = {PipelineSchedule::one_forward_one_backward};
  EXPECT_THAT(words(s),
              testing::UnorderedElementsAre(
                  "--parallel data=2", "--parallel data=1,tensor=2", "--parallel data=1,tensor=2 --micro-batches 2",
                  "--parallel data=1,tensor=2,sequence=2", "--parallel data=1,tensor=2,sequence=2 --micro-batches 2",
                  "--parallel data=1,pipeline=2 --schedule 1f1b",
                  "--parallel data=1,pipeline=2 --micro-batches 2 --schedule 1f1b"));
}

// 12 devices: as many ordered factorisations into three as 12 = 2^2 x 3 has, C(4, 2) x C(3, 2) = 18.
TEST(SearchSpace, HasEveryFactorisation) {
  SearchSpace s = test::space(12, 12);
  s.zero = {0}, s.recompute = {Recompute::none}, s.sequence = false, s.micro_batches = {};
  s.schedules = {PipelineSchedule::gpipe};
  EXPECT_EQ(strategies(s).size(), 18U);
  for (const Strategy& strategy : strategies(s)) EXPECT_EQ(strategy.devices(), 12);
  s.data = false;
  EXPECT_EQ(strategies(s).size(), 6U);  // 12 has six divisors for two axes
}

// Two replicas of two stages of two tensor ranks, each in the usual order, with stages nearer than replicas, and with
// replicas nearest; of each four ways to exchange gradients. Where there are no replicas there is one of each.
TEST(SearchSpace, VariesOrdersAndBuckets) {
  SearchSpace s = test::space(8, 2);
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
    for (const std::string bucket : {"", " --bucket 5MiB", " --bucket 100MiB", " --no-overlap"})
      expected.push_back(order + bucket);
  EXPECT_THAT(of_the_mesh, testing::UnorderedElementsAreArray(expected));
  EXPECT_EQ(without_replicas, 4U);  // tensor x pipeline = 8 x 1, 4 x 2, 2 x 4, 1 x 8
  const std::set<std::string> usual = words(s);
  s.fixed.order = {MeshAxis::data};  // what is varied is not fixed
  EXPECT_EQ(words(s), usual);
  EXPECT_EQ(parse_varied("order,speed", s).error().code, ErrorCode::usage);
  EXPECT_EQ(parse_varied("", s).error().code, ErrorCode::usage);
}

// Two replicas of two samples, whole or in two micro-batches: where these are several, and parts of gradients are held.
TEST(SearchSpace, VariesWhenGradientsAreReducedWhereAsked) {
  SearchSpace s = test::space(2, 4);
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

// Of shared parameters one block at a time is gathered, so no group of blocks runs again as one.
TEST(SearchSpace, GroupsNoBlocksOfSharedParameters) {
  SearchSpace s = test::space(2, 2);
  s.zero = {2, 3}, s.recompute = {Recompute::full}, s.micro_batches = {};
  ASSERT_TRUE(parse_axes("data", s).has_value());
  ASSERT_TRUE(parse_varied("recompute", s).has_value());
  std::vector<std::string> expected;
  for (const std::string again : {"full", "every:2", "every:3", "every:4", "groups:2", "groups:4"})
    for (const std::string zero : {"2", "3"})
      if (zero == "2" || !again.starts_with("groups"))
        expected.push_back("--parallel data=2 --zero " + zero + " --recompute " + again);
  EXPECT_THAT(words(s), testing::UnorderedElementsAreArray(expected));
}

TEST(SearchSpace, GathersSharedParametersLateWhereAsked) {
  SearchSpace s = test::space(2, 2);
  s.zero = {2, 3}, s.recompute = {Recompute::none}, s.micro_batches = {};
  ASSERT_TRUE(parse_axes("data", s).has_value());
  const std::string two = "--parallel data=2 --zero 2", three = "--parallel data=2 --zero 3",
                    late = three + " --backward-prefetch post";
  EXPECT_THAT(words(s), testing::UnorderedElementsAre(two, three));
  ASSERT_TRUE(parse_varied("prefetch", s).has_value());
  EXPECT_THAT(words(s), testing::UnorderedElementsAre(two, three, late));
  s.fixed.gather_late = true;
  EXPECT_THAT(words(s), testing::UnorderedElementsAre(two, three, late)) << "whatever was asked for";
}

// Where the sequence is split.
TEST(SearchSpace, ExchangesBesideProductsWhereAsked) {
  SearchSpace s = test::space(2, 2);
  s.zero = {0}, s.recompute = {Recompute::none}, s.micro_batches = {};
  ASSERT_TRUE(parse_axes("tensor,sequence", s).has_value());
  const std::vector<std::string> usual{"--parallel data=1,tensor=2", "--parallel data=1,tensor=2,sequence=2"};
  EXPECT_THAT(words(s), testing::UnorderedElementsAreArray(usual));
  ASSERT_TRUE(parse_varied("overlap-tensor", s).has_value());
  EXPECT_THAT(words(s), testing::UnorderedElementsAre(usual[0], usual[1], usual[1] + " --overlap-tensor"));
  s.fixed.overlap_tensor = true;
  EXPECT_EQ(words(s).size(), 3U) << "whatever was asked for";
}

// Two replicas, with their state whole or shared: levels and chosen values where it is whole alone. One has nobody to
// send to.
TEST(SearchSpace, VariesTheFormOfGradientsWhereAsked) {
  SearchSpace s = test::space(2, 2);
  s.zero = {0, 1}, s.recompute = {Recompute::none}, s.micro_batches = {};
  ASSERT_TRUE(parse_axes("data,tensor", s).has_value());
  EXPECT_THAT(words(s), testing::UnorderedElementsAre("--parallel data=2", "--parallel data=2 --zero 1",
                                                      "--parallel data=1,tensor=2"));
  ASSERT_TRUE(parse_varied("compress", s).has_value());
  EXPECT_THAT(words(s), testing::UnorderedElementsAre(
                            "--parallel data=2", "--parallel data=2 --compress bf16",
                            "--parallel data=2 --compress 1bit", "--parallel data=2 --compress 2bit",
                            "--parallel data=2 --compress topk:0.01", "--parallel data=2 --zero 1",
                            "--parallel data=2 --zero 1 --compress bf16", "--parallel data=1,tensor=2"));
}

// One micro-batch on one device: what runs again, and where what it keeps lies. SGD keeps nothing that could lie
// elsewhere.
TEST(SearchSpace, VariesWhichBlocksRunAgainAndWhatLiesOutsideWhereAsked) {
  SearchSpace s = test::space(1, 1);
  s.recompute = {Recompute::none, Recompute::full};
  ASSERT_TRUE(parse_varied("recompute,offload", s).has_value());
  std::set<std::string> expected;
  for (const std::string again : {"full", "every:2", "every:3", "every:4", "groups:2", "groups:4"})
    for (const std::string offload : {"", " --offload activations"})
      expected.insert("--parallel data=1 --recompute " + again + offload);
  expected.insert("--parallel data=1");
  EXPECT_EQ(words(s), expected);
  s.fixed.optimizer = OptimizerKind::adam, s.recompute_every.clear(), s.recompute_together.clear();
  EXPECT_THAT(words(s),
              testing::UnorderedElementsAre("--parallel data=1", "--parallel data=1 --offload optimizer",
                                            "--parallel data=1 --recompute full",
                                            "--parallel data=1 --recompute full --offload optimizer",
                                            "--parallel data=1 --recompute full --offload activations",
                                            "--parallel data=1 --recompute full --offload optimizer,activations"));
  const std::vector<Strategy> all = strategies(s);
  EXPECT_LT(complexity(all.front()), complexity(all.back()));
}

// Two stages of two micro-batches.
TEST(SearchSpace, VariesSchedulesWhereAsked) {
  SearchSpace s = test::space(2, 2);
  s.axes = {MeshAxis::pipeline}, s.data = false, s.micro_batches = {1}, s.recompute = {Recompute::full};
  s.schedules = {PipelineSchedule::one_forward_one_backward};
  const std::size_t usual = strategies(s).size();
  ASSERT_TRUE(parse_varied("schedule,schedule", s).has_value());
  EXPECT_EQ(strategies(s).size(), 2 * usual);
  ASSERT_TRUE(parse_varied("offload", s).has_value());
  EXPECT_EQ(strategies(s).size(), 2 * 2 * usual) << "activations there, or here; there is no state";
  EXPECT_THAT(words(s),
              testing::Contains("--parallel data=1,pipeline=2 --micro-batches 2 --schedule gpipe --recompute full"));
  for (const SearchVariation& one : search_variations()) EXPECT_TRUE(parse_varied(one.word, s).has_value()) << one.word;
}

// Twelve replicas share their state among all of them, or in groups of two, three, four or six.
TEST(SearchSpace, VariesAmongHowManyReplicasStateIsSharedWhereAsked) {
  SearchSpace s = test::space(12, 12);
  ASSERT_TRUE(parse_axes("data", s).has_value());
  s.zero = {0, 2}, s.recompute = {Recompute::none};
  const std::vector<std::string> usual = {"--parallel data=12", "--parallel data=12 --zero 2"};
  EXPECT_THAT(words(s), testing::UnorderedElementsAreArray(usual));
  ASSERT_TRUE(parse_varied("shards", s).has_value());
  std::vector<std::string> expected = usual;
  for (const int ranks : {2, 3, 4, 6}) expected.push_back(fmt::format("--parallel data=12 --zero 2:{}", ranks));
  EXPECT_THAT(words(s), testing::UnorderedElementsAreArray(expected));
  const std::vector<Strategy> all = strategies(s);
  EXPECT_LT(complexity(all[1]), complexity(all[2]));
}

// Where a sequence is cut, in every way to exchange it; elsewhere there is nothing to exchange.
TEST(SearchSpace, VariesTheExchangeOfContextWhereAsked) {
  SearchSpace s = test::space(2, 2);
  ASSERT_TRUE(parse_axes("data,context", s).has_value());
  s.zero = {0}, s.recompute = {Recompute::none}, s.micro_batches = {};
  ASSERT_TRUE(parse_varied("context", s).has_value());
  std::vector<std::string> expected = {"--parallel data=2"};
  for (const char* how : {"", " --context-exchange heads", " --context-exchange keys", " --context-exchange ring"})
    expected.push_back(std::string("--parallel data=1,context=2") + how);
  EXPECT_THAT(words(s), testing::UnorderedElementsAreArray(expected));
}

// Beside the host's memory or alone; nothing is tried twice.
TEST(SearchSpace, VariesWhatLiesInStorageWhereAsked) {
  SearchSpace s = test::space(1, 1);
  s.recompute = {Recompute::none}, s.fixed.optimizer = OptimizerKind::adam;
  ASSERT_TRUE(parse_varied("nvme", s).has_value());
  EXPECT_THAT(words(s),
              testing::UnorderedElementsAre("--parallel data=1", "--parallel data=1 --offload optimizer:nvme"));
  ASSERT_TRUE(parse_varied("offload,nvme", s).has_value());
  EXPECT_THAT(words(s), testing::UnorderedElementsAre("--parallel data=1", "--parallel data=1 --offload optimizer",
                                                      "--parallel data=1 --offload optimizer:nvme"));
}

// What a strategy runs again is searched: what one says of it by itself is not carried over.
TEST(SearchSpace, BeginsWithoutBlocksThatAreLeftOut) {
  SearchSpace s = test::space(1, 1);
  s.fixed.recompute = Recompute::full, s.fixed.recompute_every = 2;
  EXPECT_THAT(words(s), testing::UnorderedElementsAre("--parallel data=1", "--parallel data=1 --recompute selective",
                                                      "--parallel data=1 --recompute full"));
}

TEST(SearchSpace, SharesStateOnlyAmongReplicasAndInterleavesOnlyWholeRounds) {
  for (const Strategy& s : strategies(test::space(8, 16))) {
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
  SearchSpace s = test::space(2, 2);
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
  SearchSpace s = test::space(4, 8);
  ASSERT_TRUE(parse_axes("data,expert", s));
  s.zero = {1}, s.recompute = {Recompute::none}, s.micro_batches = {1};
  EXPECT_THAT(words(s),
              testing::UnorderedElementsAre(
                  "--parallel data=4 --zero 1", "--parallel data=4 --micro-batches 2 --zero 1",
                  "--parallel data=2,expert=2 --zero 1", "--parallel data=2,expert=2 --micro-batches 2 --zero 1",
                  "--parallel data=1,expert=4 --zero 1", "--parallel data=1,expert=4 --micro-batches 2 --zero 1"));
}

TEST(SearchSpace, AxesAreReadByName) {
  SearchSpace s = test::space(4, 4);
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

}  // namespace
}  // namespace sibyl

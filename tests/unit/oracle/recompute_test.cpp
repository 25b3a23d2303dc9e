// Which steps run again, and what that takes and saves.
#include "oracle/plan/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "oracle/expected_maximum.h"
#include "oracle/interval.h"
#include "oracle/memory/footprint.h"
#include "oracle/plan/blocks.h"
#include "oracle/plan/pipeline/cut.h"
#include "oracle/predict.h"
#include "tests/support/any_plan.h"
#include "tests/support/clusters.h"
#include "tests/support/experts.h"
#include "tests/support/graphs.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using test::zoo;

Plan plan_of(const Graph& graph, Recompute recompute, std::int64_t batch = 2) {
  Strategy strategy;
  strategy.global_batch = batch;
  strategy.recompute = recompute;
  return *make_plan(graph, strategy);
}

// Five steps before the loss, one after the other: ceil(sqrt 5) = 3 of them, and the other two.
TEST(Blocks, OfAChainAreItsSquareRoot) {
  const Plan plan = plan_of(test::mlp({4, 8, 16, 3}, 2), Recompute::full);
  EXPECT_THAT(plan.stages[0].recomputed, ElementsAre(Segment{0, 3}, Segment{3, 5}));
}

// 12 layers; 3 + 4 + 6 + 3 residual blocks, of which the first of each group is of its own shape; 2 of each of 4.
TEST(Blocks, AreTransformerLayersAndResidualBlocks) {
  const auto blocks = [](const Graph& graph) {
    const Plan plan = plan_of(graph, Recompute::none);
    return find_blocks(plan.stages[0]).size();
  };
  EXPECT_EQ(blocks(zoo("gpt2", 1, {{"seq", 32}})), 12U);
  EXPECT_EQ(blocks(zoo("deit-tiny", 1)), 12U);
  EXPECT_EQ(blocks(zoo("resnet50", 1)), 16U);
  EXPECT_EQ(blocks(zoo("resnet18", 1)), 8U);
}

// Where blocks begin and end, in steps that count.
std::vector<Segment> counted(const Stage& stage, std::size_t from, const std::vector<Segment>& blocks) {
  const std::vector<bool> apart = repeatable_steps(stage);
  const auto at = [&](std::size_t step) {
    return static_cast<std::size_t>(std::count(apart.begin() + static_cast<std::ptrdiff_t>(from),
                                               apart.begin() + static_cast<std::ptrdiff_t>(step), false));
  };
  std::vector<Segment> result;
  for (const Segment& block : blocks) result.push_back({at(block.begin), at(block.end)});
  return result;
}

// What a stage does not read itself does not join its steps: blocks are not those of the program that lie within it.
RC_GTEST_PROP(Blocks, OfARangeAreThoseOfAStageOfItsSteps, ()) {
  const Graph graph = test::any_model();
  const auto program = make_program(graph, test::any_strategy(graph));
  if (!program) return;
  std::vector<std::size_t> places;
  const std::vector<OperationId> operations = beginnings(*program);
  for (std::size_t i = 1; i < operations.size(); ++i)
    if (operations[i].valid()) places.push_back(i);
  const int last = static_cast<int>(places.size()) - 1;
  RC_ASSERT(last > 0);
  const int first = test::any(0, last - 1);
  const std::size_t begin = places[static_cast<std::size_t>(first)];
  const std::size_t end = places[static_cast<std::size_t>(test::any(first + 1, last))];
  const Stage stage = cut(*program, {begin, end}).stages[1];
  RC_ASSERT(counted(stage, 0, find_blocks(stage)) == counted(*program, begin, Blocks(*program).within(begin, end)));
}

// The casts of rotary tables, which every layer reads, are made again in the first layer of a stage.
TEST(Blocks, OfLayersAreAlikeWhateverIsMadeOnceForAllOfThem) {
  Strategy strategy;
  strategy.precision = Precision::fp16;
  const Stage program = *make_program(test::mixture_of_experts(5), strategy);
  const std::vector<Segment> all = find_blocks(program);
  ASSERT_EQ(all.size(), 5U);
  for (std::size_t first = 1; first + 1 < all.size(); ++first) {  // one layer alone does not repeat: it is two branches
    const Stage stage = cut(program, {all[first].begin}).stages[1];
    EXPECT_GT(stage.steps.size(), program.steps.size() - all[first].begin);
    const std::vector<Segment> blocks = counted(stage, 0, find_blocks(stage));
    ASSERT_EQ(blocks.size(), all.size() - first);
    for (const Segment& block : blocks) EXPECT_EQ(block.end - block.begin, blocks.front().end - blocks.front().begin);
  }
}

// y = W0 x; z = y + W2 relu(W1 y); relu(z) times a mask; W3 of that. The ReLU behind the branch belongs to it, also
// where the mask is made just before.
Graph branch_and_mask(bool made) {
  constexpr std::int64_t batch = 2, width = 8;
  Graph graph;
  const auto tensor = [&](std::string name, Shape shape, TensorKind kind, std::optional<std::size_t> batch_axis) {
    return graph.add(Tensor{std::move(name), std::move(shape), DType::f32, kind, batch_axis, {}, 0});
  };
  const auto run = [&](const std::string& name, Attributes attributes, std::vector<TensorId> inputs) {
    const TensorId result = tensor(name + ".y", {batch, width}, TensorKind::activation, 0);
    graph.add(Operation{name, std::move(attributes), std::move(inputs), {result}, {}});
    return result;
  };
  const auto linear = [&](const std::string& name, TensorId x) {
    const TensorId weight = tensor(name + ".weight", {width, width}, TensorKind::parameter, {});
    return run(name, Linear{}, {x, weight});
  };
  const TensorId x = tensor("x", {batch, width}, TensorKind::input, 0);
  TensorId mask = tensor("mask", {batch, width}, TensorKind::input, 0);
  const TensorId y = linear("fc0", x);
  const TensorId branch = linear("fc2", run("inner", Unary{UnaryKind::relu}, {linear("fc1", y)}));
  const TensorId z = run("sum", Binary{BinaryKind::add}, {y, branch});
  if (made) mask = run("made", Binary{BinaryKind::add}, {mask, mask});
  const TensorId behind = run("behind", Unary{UnaryKind::relu}, {z});
  const TensorId scores = linear("fc3", run("masked", Binary{BinaryKind::mul}, {behind, mask}));
  const TensorId targets = graph.add(Tensor{"targets", {batch}, DType::i64, TensorKind::input, 0, {}, width});
  graph.loss = tensor("loss", {}, TensorKind::activation, {});
  graph.add(Operation{"loss", CrossEntropy{1}, {scores, targets}, {graph.loss}, {}});
  EXPECT_TRUE(graph.finish(batch));
  return graph;
}

TEST(Blocks, HaveTheReluBehindThemWhateverIsMadeBetween) {
  for (const bool made : {false, true}) {
    const Stage stage = plan_of(branch_and_mask(made), Recompute::none).stages[0];
    EXPECT_THAT(counted(stage, 0, find_blocks(stage)), ElementsAre(Segment{1, 6})) << made;
  }
}

TEST(Recompute, SelectiveTakesTheCoreOfEachAttention) {
  const Plan plan = plan_of(zoo("deit-tiny", 1), Recompute::selective, 1);
  const Stage& stage = plan.stages[0];
  ASSERT_EQ(stage.recomputed.size(), 12U);
  for (const Segment& segment : stage.recomputed) {
    EXPECT_EQ(segment.end - segment.begin, 1U);
    EXPECT_TRUE(std::holds_alternative<Attention>(std::get<Compute>(stage.steps[segment.begin]).attributes));
  }
}

Plan plan_with(const Graph& graph, const std::string& recompute, std::int64_t batch = 2) {
  Strategy strategy;
  strategy.global_batch = batch;
  EXPECT_TRUE(parse_recompute(recompute, strategy).has_value()) << recompute;
  return *make_plan(graph, strategy);
}

// Twelve layers in a row: every fifth is the 5th and the 10th; five together are 5, 5 and 2.
TEST(Recompute, TakesSomeBlocksOrSeveralTogether) {
  const Graph graph = zoo("deit-tiny", 1);
  const std::vector<Segment> blocks = plan_with(graph, "full", 1).stages[0].recomputed;
  ASSERT_EQ(blocks.size(), 12U);
  EXPECT_THAT(plan_with(graph, "every:5", 1).stages[0].recomputed, ElementsAre(blocks[4], blocks[9]));
  EXPECT_THAT(plan_with(graph, "groups:5", 1).stages[0].recomputed,
              ElementsAre(Segment{blocks[0].begin, blocks[4].end}, Segment{blocks[5].begin, blocks[9].end},
                          Segment{blocks[10].begin, blocks[11].end}));
  EXPECT_THAT(plan_with(graph, "every:13", 1).stages[0].recomputed, testing::IsEmpty());
}

// fc1 relu1 fc2 relu2 fc3 loss: of the kinds named those in a row are one.
TEST(Recompute, TakesOperationsOfAKind) {
  const Graph graph = test::mlp({4, 8, 16, 3}, 2);
  EXPECT_THAT(plan_with(graph, "relu").stages[0].recomputed, ElementsAre(Segment{1, 2}, Segment{3, 4}));
  EXPECT_THAT(plan_with(graph, "unary").stages[0].recomputed, ElementsAre(Segment{1, 2}, Segment{3, 4}));
  EXPECT_THAT(plan_with(graph, "relu,linear").stages[0].recomputed, ElementsAre(Segment{0, 5}));
  EXPECT_THAT(plan_with(graph, "gelu").stages[0].recomputed, testing::IsEmpty());
}

TEST(Recompute, IsSpeltAsItIsRead) {
  for (const char* text : {"none", "selective", "full", "every:2", "groups:3", "softmax", "gelu,normalization"}) {
    Strategy strategy;
    ASSERT_TRUE(parse_recompute(text, strategy).has_value()) << text;
    EXPECT_EQ(recompute_text(strategy), text);
  }
  for (const char* text : {"", "all", "every:", "every:0", "every:x", "groups:-1", "groups:99999999999", "gelu,", "gelu,,relu"}) {
    Strategy strategy;
    const auto read = parse_recompute(text, strategy);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::usage);
  }
}

TEST(Recompute, OfGroupsGoesWithUnshardedParameters) {
  const Graph graph = test::mlp({4, 8, 16, 3}, 2);
  Strategy strategy;
  strategy.data = 2, strategy.global_batch = 4, strategy.zero = 3;
  strategy.recompute = Recompute::full, strategy.recompute_together = 2;
  EXPECT_EQ(make_plan(graph, strategy).error().code, ErrorCode::infeasible);
  strategy.zero = 2;
  EXPECT_TRUE(make_plan(graph, strategy).has_value());
}

// fc1 relu1 fc2 | relu2 fc3: the first reads the samples and makes fc2's result, the second reads that.
TEST(Recompute, SegmentsKnowWhatTheyReadAndMake) {
  const Graph graph = test::mlp({4, 8, 16, 3}, 2);
  const Plan plan = plan_of(graph, Recompute::full);
  const Stage& stage = plan.stages[0];
  const auto names = [&](const std::vector<LocalTensorId>& ids) {
    std::vector<std::string> result;
    for (const LocalTensorId id : ids) result.push_back(graph[stage[id].origin].name);
    return result;
  };
  EXPECT_THAT(names(inputs_of(stage, stage.recomputed[0])), ElementsAre("x"));
  EXPECT_THAT(names(outputs_of(stage, stage.recomputed[0])), ElementsAre("fc2.y"));
  EXPECT_THAT(names(inputs_of(stage, stage.recomputed[1])), ElementsAre("fc2.y"));
  EXPECT_THAT(names(outputs_of(stage, stage.recomputed[1])), ElementsAre("fc3.y"));
}

// Six kernels forward and back, six updates; five of forward's again.
TEST(Recompute, TakesTheTimeOfForwardAgain) {
  const Graph graph = test::mlp({4, 8, 16, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  std::vector<KernelSample> samples;
  for (KernelKey& key : kernels_of(plan_of(graph, Recompute::none), Backend::cpu))
    samples.push_back({std::move(key), Seconds{1e-3}, 0.0, 100, {}, {}, {}});
  const Cluster cluster = test::cluster(1, 1, BytesPerSecond{1e9}, std::move(samples));
  EXPECT_NEAR(predict(graph, strategy, cluster)->step_time.value(), 18e-3, 1e-9);
  strategy.recompute = Recompute::full;
  const auto p = predict(graph, strategy, cluster);
  EXPECT_NEAR(p->step_time.value(), 23e-3, 1e-9);
  EXPECT_NEAR(p->breakdown.backward.value(), 11e-3, 1e-9);
}

// The same 18 and 23 kernels of 1 ms: so much of them is the slowest of four ranks late, and half of it is unsure where
// each kernel is by half.
TEST(Recompute, IsAsUnevenAndAsUnsureAsOtherWork) {
  const Graph graph = test::mlp({4, 8, 16, 3}, 2);
  std::vector<KernelSample> samples;
  for (KernelKey& key : kernels_of(plan_of(graph, Recompute::none), Backend::cpu))
    samples.push_back({std::move(key), Seconds{1e-3}, 0.5, 1, {}, {}, {}});
  Cluster cluster = test::cluster(1, 1, BytesPerSecond{1e9}, std::move(samples));
  cluster.composition.spread = 0.05;
  const auto known = [&](Recompute recompute) {
    const Plan plan = plan_of(graph, recompute);
    return uncertainty(plan.stages[0], price(plan, plan.stages[0], cluster), {}, 4);
  };
  const Uncertainty none = known(Recompute::none), full = known(Recompute::full);
  EXPECT_NEAR(none.slowest_rank.value(), 18e-3 * 0.05 * expected_maximum(4), 1e-9);
  EXPECT_NEAR(full.slowest_rank.value(), 23e-3 * 0.05 * expected_maximum(4), 1e-9);
  EXPECT_GT(standard_deviation(full.error), standard_deviation(none.error));
}

// Of twelve layers little more than their inputs and one layer's results are kept.
TEST(Recompute, SavesMemory) {
  const Graph graph = zoo("deit-tiny", 8);
  const auto activations = [&](const std::string& recompute) {
    const Plan plan = plan_with(graph, recompute, 8);
    const Strategy& strategy = plan.strategy;
    const Cluster cluster = test::cluster(1, 1);
    const PricedStage priced = price(plan, plan.stages[0], cluster);
    return footprint(plan.stages[0], priced, strategy, cluster.kernels.device()).peak.activations.value();
  };
  const double none = activations("none"), selective = activations("selective"), full = activations("full");
  EXPECT_LT(selective, 0.95 * none);
  EXPECT_LT(full, 0.3 * none);
  const double half = activations("every:2"), together = activations("groups:4");
  EXPECT_GT(half, full);
  EXPECT_LT(half, 0.7 * none);      // about (none + full) / 2
  EXPECT_GT(together, full);        // four layers' results at once, of twelve; fewer inputs
  EXPECT_LT(together, 0.5 * none);
}

}  // namespace
}  // namespace sibyl

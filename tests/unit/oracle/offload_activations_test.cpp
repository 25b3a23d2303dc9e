// What blocks keep to run again, outside the device: which tensors, which copies, and what they take.
#include "oracle/plan/offload_activations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/onnx/import.h"
#include "models/zoo/families.h"
#include "oracle/cost/offload.h"
#include "oracle/memory/footprint.h"
#include "oracle/plan/recompute.h"
#include "oracle/predict.h"
#include "oracle/simulate/step.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Strategy outside(Tier tier = Tier::host, std::int64_t batch = 2) {
  Strategy strategy;
  strategy.global_batch = batch;
  strategy.recompute = Recompute::full;
  strategy.activation_tier = tier;
  return strategy;
}

std::vector<std::string> names(const Graph& graph, const Stage& stage, const std::vector<LocalTensorId>& ids) {
  std::vector<std::string> result;
  for (const LocalTensorId id : ids) result.push_back(graph[stage[id].origin].name);
  return result;
}

// fc1 relu1 fc2 | relu2 fc3: the first block reads samples, which stay; the second what the first makes, of 2 x 16 f32.
TEST(KeptOutside, IsWhatOneBlockAloneReads) {
  const Graph graph = test::mlp({4, 8, 16, 3}, 2);
  const Plan plan = make_plan(graph, outside()).value();
  const Stage& stage = plan.stages[0];
  ASSERT_EQ(stage.kept_outside.size(), 2U);
  EXPECT_THAT(stage.kept_outside[0], IsEmpty());
  EXPECT_THAT(names(graph, stage, stage.kept_outside[1]), ElementsAre("fc2.y"));
  EXPECT_EQ(bytes_offloaded(plan, 0), (OffloadedBytes{128, 128}));
  EXPECT_TRUE(make_plan(graph, outside(Tier::device)).value().stages[0].kept_outside.empty());
}

// Once for each micro-batch, of half the samples.
TEST(KeptOutside, MovesForEachMicroBatch) {
  Strategy strategy = outside(Tier::nvme, 8);
  strategy.accumulation = 4;
  EXPECT_EQ(bytes_offloaded(make_plan(test::mlp({4, 8, 16, 3}, 2), strategy).value(), 0), (OffloadedBytes{512, 512}));
}

Stage kept_of(const Graph& graph) { return make_plan(graph, outside()).value().stages[0]; }

// By tensor: how many segments read it.
std::vector<int> reading_segments(const Stage& stage) {
  std::vector<int> uses(stage.tensors.size(), 0);
  for (const Segment& segment : stage.recomputed)
    for (const LocalTensorId id : inputs_of(stage, segment)) ++uses[id.index()];
  return uses;
}

Graph imported(const std::string& name, void (*build)(zoo::Builder&)) {
  zoo::Builder builder(name);
  build(builder);
  ImportOptions options;
  options.batch = 2;
  return inspect_onnx_bytes(builder.bytes(), name, options)->graph;
}

// What a decoder's blocks read of the encoder stays: other blocks want it, too. So does a mask that each block reads.
TEST(KeptOutside, IsNotWhatSeveralBlocksRead) {
  const Stage t5 = kept_of(imported("t5", [](zoo::Builder& b) { zoo::t5(b, {3, 64, 4, 128, 16, 8, 50}); }));
  const std::vector<int> uses = reading_segments(t5);
  int several = 0;
  for (std::size_t t = 0; t < uses.size(); ++t)
    if (uses[t] > 1 && t5.tensors[t].kind == TensorKind::activation) ++several;
  EXPECT_GT(several, 0) << "or this tests nothing";
  for (const std::vector<LocalTensorId>& kept : t5.kept_outside)
    for (const LocalTensorId id : kept) EXPECT_EQ(uses[id.index()], 1);
  const Stage bert = kept_of(imported("bert", [](zoo::Builder& b) {
    zoo::bert(b, {3, 64, 4, 16, zoo::BertHead::masked_language_model, 0, 50, 16, 0, true});
  }));
  ASSERT_EQ(bert.kept_outside.size(), 3U);
  for (const std::vector<LocalTensorId>& kept : bert.kept_outside) EXPECT_EQ(kept.size(), 1U);
}

TEST(KeptOutside, IsRefusedWithoutBlocks) {
  const Graph graph = test::mlp({4, 8, 16, 3}, 2);
  Strategy strategy = outside();
  strategy.recompute = Recompute::none;
  const auto none = make_plan(graph, strategy);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::infeasible);
  EXPECT_THAT(none.error().hint, testing::HasSubstr("--recompute full"));
}

Strategy in_two_stages(PipelineSchedule schedule, int micro_batches, std::vector<std::string> stages) {
  Strategy strategy = outside(Tier::host, 2 * micro_batches);
  strategy.pipeline = 2;
  strategy.accumulation = micro_batches;
  strategy.schedule = schedule;
  strategy.stage_starts = std::move(stages);
  return strategy;
}

// Blocks fc1 relu1 fc2 | relu2 fc3 | relu3 fc4. Cut behind fc2, its result, which the second stage begins with, stays
// with either, and the third block's input lies outside (of fc1 relu1 fc2 alone fc2 is a block). Cut behind fc3, the
// second's does, 2 x 16 f32, once for each micro-batch that is on its way: of four two in the first of two stages by
// 1F1B, four by GPipe, and one in the second.
TEST(KeptOutside, OfAStageIsWhatItMakesItself) {
  const Graph graph = test::mlp({4, 8, 16, 12, 3}, 2);
  const auto plan = [&](PipelineSchedule schedule, std::string stage) {
    return make_plan(graph, in_two_stages(schedule, 4, {std::move(stage)})).value();
  };
  const auto kept = [&](const Plan& made, std::size_t s) {
    std::vector<std::string> result;
    for (const std::vector<LocalTensorId>& of_block : made.stages[s].kept_outside)
      for (const std::string& name : names(graph, made.stages[s], of_block)) result.push_back(name);
    return result;
  };
  const auto f1b = PipelineSchedule::one_forward_one_backward;
  const Plan early = plan(f1b, "fc2.relu"), late = plan(f1b, "fc3.relu"),
             all = plan(PipelineSchedule::gpipe, "fc3.relu");
  EXPECT_THAT(kept(early, 0), ElementsAre("fc1.relu"));
  EXPECT_THAT(kept(early, 1), ElementsAre("fc3.y"));
  EXPECT_THAT(kept(late, 0), ElementsAre("fc2.y"));
  EXPECT_THAT(kept(late, 1), IsEmpty());
  EXPECT_EQ(bytes_offloaded(late, 0), (OffloadedBytes{4 * 128, 4 * 128}));
  EXPECT_EQ(bytes_offloaded(late, 1), OffloadedBytes{});
  EXPECT_EQ(most_on_their_way(late.stages[0]), 2);
  EXPECT_EQ(most_on_their_way(late.stages[1]), 1);
  EXPECT_EQ(most_on_their_way(all.stages[0]), 4);
  EXPECT_EQ(outside_bytes(late, test::cluster(2, 1)).host, Bytes{2 * 128});
  EXPECT_EQ(outside_bytes(all, test::cluster(2, 1)).host, Bytes{4 * 128});
}

struct TimedSegments {
  Plan plan;
  PricedStage priced;
};

// Each kernel takes a second, each copy `copy`.
TimedSegments timed(const Graph& graph, Seconds copy) {
  TimedSegments result{make_plan(graph, outside()).value(), {}};
  result.priced = price(result.plan, result.plan.stages[0], test::cluster(1, 1));
  for (PricedKernel& kernel : result.priced.prices) kernel.estimate.time.time = Seconds{1};
  for (PricedStage::Kept& kept : result.priced.kept) kept.out.estimate.time = kept.in.estimate.time = copy;
  return result;
}

// The first block until 3. Its result goes out from then until 7, beside the second block, which ends at 5; the loss
// waits until it is out, and ends at 8. From there it comes back until 12; the loss's backward ends at 9, and the
// second block waits until 12.
TEST(KeptOutside, IsWaitedForWhereCopiesTakeLonger) {
  const TimedSegments slow = timed(test::mlp({4, 8, 16, 3}, 2), Seconds{4}),
                      quick = timed(test::mlp({4, 8, 16, 3}, 2), Seconds{1});
  const SimulatedStep step = simulate_step(slow.plan.stages[0], slow.priced, {});
  EXPECT_NEAR(step.breakdown.offload_exposed.value(), 2 + 3, 1e-9);
  EXPECT_NEAR(step.breakdown.offload_total.value(), 8, 1e-9);
  const SimulatedStep hidden = simulate_step(quick.plan.stages[0], quick.priced, {});
  EXPECT_NEAR(hidden.breakdown.offload_exposed.value(), 0, 1e-9);
  EXPECT_NEAR((step.total - hidden.total).value(), 5, 1e-9);
  EXPECT_NEAR(step.breakdown.forward.value(), hidden.breakdown.forward.value(), 1e-9);
  EXPECT_NEAR(step.breakdown.backward.value(), hidden.breakdown.backward.value(), 1e-9);
}

// A turn by itself. Each kernel takes a second, each copy four: the second block's input goes out from 3 until 7, when
// the stage's last two kernels have ended at 5: the turn is over when it is out. It comes back from when backward
// begins, until 4; the block then runs again, two kernels, and backward through it and the first, four more.
TEST(KeptOutside, HoldsATurnUpUntilItIsOut) {
  const Graph graph = test::mlp({4, 8, 16, 12, 3}, 2);
  for (const auto schedule : {PipelineSchedule::one_forward_one_backward, PipelineSchedule::zero_bubble}) {
    const Plan plan = make_plan(graph, in_two_stages(schedule, 4, {"fc3.relu"})).value();
    const Stage& stage = plan.stages[0];
    PricedStage priced = price(plan, stage, test::cluster(2, 1));
    for (PricedKernel& kernel : priced.prices) kernel.estimate.time.time = Seconds{1};
    for (PricedStage::Kept& kept : priced.kept) kept.out.estimate.time = kept.in.estimate.time = Seconds{4};
    const auto turn = [&](Turn::Kind kind) { return simulate_turn(stage, priced, {}, Turn{kind, 0, 0}, {}); };
    const TurnTimes forward = turn(Turn::Kind::forward);
    EXPECT_NEAR(forward.total.value(), 7, 1e-9);
    EXPECT_NEAR(forward.copied.value(), 2, 1e-9);
    EXPECT_NEAR(forward.copies.value(), 4, 1e-9);
    const bool split = schedule == PipelineSchedule::zero_bubble;
    const TurnTimes backward = turn(split ? Turn::Kind::backward_input : Turn::Kind::backward);
    EXPECT_NEAR(backward.copied.value(), 4, 1e-9);
    if (split) {
      EXPECT_NEAR(turn(Turn::Kind::backward_weight).copies.value(), 0, 1e-9) << "it is there already";
    }
  }
}

// Two micro-batches are on their way through sixteen blocks behind the first, that keep what they read, 512 x 256 f32.
// Where most is alive all of it is there without; with, what two blocks of one micro-batch read.
TEST(KeptOutside, LeavesADeviceOfAPipeline) {
  const Graph graph = test::mlp(std::vector<std::int64_t>(33, 256), 512);
  const auto peak = [&](Tier tier) {
    Strategy strategy = in_two_stages(PipelineSchedule::one_forward_one_backward, 4, {"fc17.relu"});
    strategy.global_batch = 4 * 512;
    strategy.activation_tier = tier;
    const Plan plan = make_plan(graph, strategy).value();
    PricedStage priced = price(plan, plan.stages[0], test::cluster(2, 1));
    for (PricedKernel& kernel : priced.prices) kernel.estimate.workspace = Bytes{};
    return footprint(plan.stages[0], priced, strategy, test::cpu_device()).peak;
  };
  EXPECT_EQ(peak(Tier::device).activations - peak(Tier::host).activations, Bytes{(2 * 16 - 2) * 512 * 256 * 4.0});
}

TEST(KeptOutside, IsDrawnBesideTheBlocks) {
  const Graph graph = test::mlp({4, 8, 16, 3}, 2);
  const TimedSegments slow = timed(graph, Seconds{4});
  std::vector<std::string> copies;
  const std::vector<NamedSpan> spans = timeline(graph, slow.plan.stages[0], slow.priced, {});
  for (const NamedSpan& span : spans) {
    if (span.track == "copies") copies.push_back(span.name);
    if (span.name == "loss forward") {
      EXPECT_EQ(spans[span.after].name, "write kept 1");
    }
    if (span.name.starts_with("recompute") && span.name.find("fc2.relu") != std::string::npos) {
      EXPECT_EQ(spans[span.after].name, "read kept 1");
    }
  }
  EXPECT_THAT(copies, ElementsAre("write kept 1", "read kept 1"));
}

// Behind the first layer fifteen blocks, a ReLU and a layer each, keep what they read, 512 x 256 f32. When backward
// comes to the last, where most is alive, all of it is there without; with, its own and that of the one before.
TEST(KeptOutside, LeavesTheDevice) {
  const Graph graph = test::mlp(std::vector<std::int64_t>(17, 256), 512);
  const auto peak = [&](Tier tier) {
    const Strategy strategy = outside(tier, 512);
    const Plan plan = make_plan(graph, strategy).value();
    EXPECT_EQ(plan.stages[0].recomputed.size(), 15U);
    PricedStage priced = price(plan, plan.stages[0], test::cluster(1, 1));
    for (PricedKernel& kernel : priced.prices) kernel.estimate.workspace = Bytes{};
    return footprint(plan.stages[0], priced, strategy, test::cpu_device()).peak;
  };
  EXPECT_EQ(peak(Tier::device).activations - peak(Tier::host).activations, Bytes{13 * 512 * 256 * 4});
  EXPECT_EQ(peak(Tier::nvme).total, peak(Tier::host).total);
}

// Two ranks: of a micro-batch of two samples each.
TEST(KeptOutside, IsWhatANodeNeeds) {
  const Graph graph = test::mlp({4, 8, 16, 3}, 2);
  Strategy strategy = outside(Tier::host, 4);
  strategy.data = 2;
  EXPECT_EQ(outside_bytes(make_plan(graph, strategy).value(), test::cluster(1, 2)).host, Bytes{2 * 128});
  strategy.optimizer = OptimizerKind::adam;
  strategy.optimizer_tier = Tier::nvme;
  const OutsideBytes both = outside_bytes(make_plan(graph, strategy).value(), test::cluster(1, 2));
  EXPECT_EQ(both.host, Bytes{2 * 128});
  EXPECT_EQ(both.storage, Bytes{2 * 8.0 * (4 * 8 + 8 + 8 * 16 + 16 + 16 * 3 + 3)});
}

TEST(KeptOutside, IsToldByThePrediction) {
  Cluster cluster = test::cluster(1, 1);
  cluster.storage_read = cluster.storage_write = BytesPerSecond{1e5};
  const Prediction p =
      predict(test::mlp(std::vector<std::int64_t>(17, 256), 8), outside(Tier::nvme, 8), cluster).value();
  EXPECT_EQ(p.offload, "activations:nvme");
  EXPECT_EQ(p.storage, Bytes{15 * 8 * 256 * 4});
  EXPECT_EQ(p.bottleneck.name, "storage: activations");
  EXPECT_GT(p.breakdown.offload_exposed, Seconds{});
}

}  // namespace
}  // namespace sibyl

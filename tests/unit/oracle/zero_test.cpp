// Sharded optimizer state, gradients and parameters: who holds what, what is sent, what it takes.
#include "oracle/plan/zero.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/memory/footprint.h"
#include "oracle/memory/least_state.h"
#include "oracle/plan/norms.h"
#include "oracle/predict.h"
#include "oracle/simulate/pipeline.h"
#include "tests/support/clusters.h"
#include "tests/support/footprints.h"
#include "tests/support/graphs.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using test::footprint_of;

Strategy sharded(int zero, int replicas = 2) {
  Strategy strategy;
  strategy.data = replicas;
  strategy.global_batch = 2 * replicas;
  strategy.zero = zero;
  strategy.optimizer = OptimizerKind::adam;
  return strategy;
}

// Of two replicas each, which hold parts of its parameters; three micro-batches.
Strategy two_stages() {
  Strategy strategy = sharded(3);
  strategy.pipeline = 2;
  strategy.accumulation = 3;
  strategy.global_batch = 12;
  return strategy;
}

// 67 parameters in one bucket: parts of 34 and 33. Over a ring of two a reduce-scatter sends the other's part, an
// all-gather the own one: 33 + 34 elements, as an all-reduce.
TEST(Zero, OneAndTwoSendWhatAnAllReduceSends) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  for (const int zero : {0, 1, 2}) {
    const auto plan = make_plan(graph, sharded(zero));
    for (const int rank : {0, 1}) EXPECT_EQ(bytes_sent_per_step(*plan, rank, Algorithm::ring), 67 * 4) << zero;
  }
}

// Two replicas of two ranks that share images hold a convolution's state in four parts, and what no strategy can do
// without is no more: 4 bytes of weight, 4 of gradient and 8 of Adam's moments a parameter, over four.
TEST(Zero, RanksThatShareImagesHavePartsToo) {
  const Graph graph = test::zoo("small-cnn", 4);
  Strategy strategy = sharded(3);
  strategy.height = 2;
  strategy.global_batch = 4;
  const auto parameters = static_cast<double>(graph.parameter_count());
  EXPECT_DOUBLE_EQ(least_state(parameters, strategy).value(), parameters * 16 / 4);
  const auto prediction = predict(graph, strategy, test::cluster(1, 4));
  ASSERT_TRUE(prediction) << to_string(prediction.error());
  EXPECT_LT(prediction->memory.optimizer.value(), parameters * 8 / 2);
  EXPECT_GE(prediction->memory.needed(), least_state(parameters, strategy));
}

// A timeline has all of 150 micro-batches, the step's time 64 and what the last of these adds.
TEST(Zero, ManyMicroBatchesTakeWhatEachOfThemDoes) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Cluster cluster = test::cluster(2, 1);
  for (const auto& [zero, each] : std::vector<std::pair<int, bool>>{{0, false}, {3, false}, {2, true}, {3, true}}) {
    Strategy strategy = sharded(zero);
    strategy.reduce_each = each;
    strategy.accumulation = 150;
    strategy.global_batch = 600;
    const Plan plan = *make_plan(graph, strategy);
    const PricedStage priced = price(plan, plan.stages[0], cluster);
    const SimulatedStep step = simulate_step(plan.stages[0], priced, {});
    Seconds end;
    for (const NamedSpan& span : timeline(graph, plan.stages[0], priced, {})) end = std::max(end, span.span.end);
    EXPECT_NEAR(step.total / end, 1, 1e-9) << zero;
    const TimeBreakdown& parts = step.breakdown;
    EXPECT_NEAR(
        (parts.forward + parts.backward + parts.optimizer + parts.communication_exposed + parts.host) / step.total, 1,
        1e-9)
        << zero;
  }
}

// A chain of three steps and the loss: blocks fc1+relu and fc2. Units of 32 + 8 and 24 + 3 elements; rank 0 has 20 and
// 14 of them, rank 1 20 and 13. Scattered once, gathered twice: 20 + 13 + 2 (20 + 14) by rank 0.
TEST(Zero, ThreeGathersEachUnitTwice) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto plan = make_plan(graph, sharded(3));
  const Stage& stage = plan->stages[0];
  ASSERT_EQ(stage.units.size(), 2U);
  EXPECT_EQ(stage.units[0].begin, 0U);
  EXPECT_EQ(stage.units[0].end, 2U);
  const GradientSync& sync = stage.gradients.at(0);
  EXPECT_EQ(sync.buckets.at(0).elements, 27) << "the last unit's gradients are complete first";
  EXPECT_EQ(stage.units[1].bucket, 0U);
  EXPECT_EQ(sync.buckets.at(1).elements, 40);
  EXPECT_EQ(bytes_sent_per_step(*plan, 0, Algorithm::ring), 4 * (20 + 13 + 2 * (20 + 14)));
  EXPECT_EQ(bytes_sent_per_step(*plan, 1, Algorithm::ring), 4 * (20 + 14 + 2 * (20 + 13)));
}

// Rank 0 copies its 20 and 14 elements into what is gathered, and as many of gradients out of the buffers that serve
// all buckets in turn; stage 1 has a buffer for each bucket, and updates from there.
TEST(Zero, RanksCopyTheirParts) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto copies = [&](int zero, auto which) {
    const Plan plan = *make_plan(graph, sharded(zero));
    const StageKernels kernels = kernels_of(plan.stages[0], Backend::cpu);
    std::vector<std::string> texts;
    for (const auto key : which(kernels)) texts.push_back(to_string(kernels.keys[key]));
    return texts;
  };
  const auto units = [](const StageKernels& k) { return k.unit_copies; };
  const auto back = [](const StageKernels& k) { return k.copies_back; };
  const auto of = [](const std::string& n) { return "forward copy[" + n + "]->[" + n + "]:f32"; };
  EXPECT_THAT(copies(3, units), testing::ElementsAre(of("20"), of("14")));
  EXPECT_THAT(copies(3, back), testing::UnorderedElementsAre(of("20"), of("14")));
  EXPECT_THAT(copies(2, back), testing::ElementsAre(of("34")));
  EXPECT_THAT(copies(2, units), testing::IsEmpty());
  EXPECT_THAT(copies(1, back), testing::IsEmpty());
}

// Gathered and scattered as they are: of two bytes half as many as of four.
TEST(Zero, UnitsAreOfTheirParametersType) {
  Strategy strategy = sharded(3);
  const auto sent = [&] {
    return bytes_sent_per_step(make_plan(test::mlp({4, 8, 3}, 2), strategy).value(), 0, Algorithm::ring);
  };
  const std::int64_t of_four_bytes = sent();
  strategy.precision = Precision::bf16;
  strategy.half_weights = true;
  EXPECT_EQ(2 * sent(), of_four_bytes);
}

// But scattered in four where they are summed so; gathered as weights are.
TEST(Zero, GradientsTravelAsTheyAreSummed) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = sharded(3);
  const BytesSent of_four_bytes = bytes_by_kind(make_plan(graph, strategy).value(), 0, Algorithm::ring);
  strategy.precision = Precision::bf16;
  strategy.half_weights = strategy.fp32_gradients = true;
  const BytesSent sent = bytes_by_kind(make_plan(graph, strategy).value(), 0, Algorithm::ring);
  EXPECT_EQ(sent.gradients, of_four_bytes.gradients);
  EXPECT_EQ(2 * sent.parameters, of_four_bytes.parameters);
}

// Two stages of two replicas, three micro-batches: ranks 0 and 1 hold 20 each of the first linear layer's 40
// parameters, rank 2 holds 14 and rank 3 holds 13 of the second's 27. Gathered for each pass over each micro-batch,
// scattered once, after the last.
TEST(Zero, ThreeGathersForEveryMicroBatchOfAPipeline) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = two_stages();
  strategy.stage_starts = {"fc2"};
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan) << to_string(plan.error());
  const auto sent = [&](int rank) { return bytes_by_kind(*plan, rank, Algorithm::ring); };
  EXPECT_EQ(sent(0).gradients, 4 * 20);
  EXPECT_EQ(sent(0).parameters, 4 * 3 * 2 * 20);
  EXPECT_EQ(sent(2).gradients, 4 * 13);
  EXPECT_EQ(sent(2).parameters, 4 * 3 * 2 * 14);
  EXPECT_EQ(sent(3).gradients, 4 * 14);
  EXPECT_EQ(sent(3).parameters, 4 * 3 * 2 * 13);
}

// Of three micro-batches, each way: units gathered, the later ones in part hidden, and what goes to the neighbour, the
// last of it beside buckets; and these once. Gradients of weights that are put off read no parameter: for these nothing
// is gathered again.
TEST(Zero, GathersOfAPipelineAreCommunication) {
  for (const auto schedule : {PipelineSchedule::one_forward_one_backward, PipelineSchedule::zero_bubble}) {
    Strategy strategy = two_stages();
    strategy.schedule = schedule;
    const Plan plan = make_plan(test::mlp(std::vector<std::int64_t>(9, 256), 2), strategy).value();
    const std::vector<PricedStage> priced = price(plan, test::cluster(4, 1));
    const SimulatedPipeline pipeline = simulate_pipeline(plan, priced, {});
    for (std::size_t c = 0; c < 2; ++c) {
      ASSERT_GT(priced[c].unit_gathers.size(), 1U);
      Seconds expected;
      for (const TimedTurn& turn : pipeline.coordinates[c].turns) expected += turn.sent.end - turn.sent.start;
      EXPECT_GE(expected / (3.0 * (c == 0 ? *priced[c].send_forward : *priced[c].send_backward).time), 1 - 1e-9);
      for (const PricedMessage& gather : priced[c].unit_gathers) expected += 6.0 * gather.estimate.time.time;
      for (const PricedMessage& bucket : priced[c].messages) expected += bucket.estimate.time.time;
      EXPECT_NEAR(pipeline.coordinates[c].step.breakdown.communication_total / expected, 1, 1e-9);
      EXPECT_LT(pipeline.coordinates[c].step.breakdown.communication_exposed, expected);
    }
  }
}

TEST(Zero, PiecesOfABucketKnowTheirParameters) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto plan = make_plan(graph, sharded(1));
  const Stage& stage = plan->stages[0];
  const Bucket& bucket = stage.gradients[0].buckets.at(0);  // fc2.bias 3, fc2.weight 24, fc1.bias 8, fc1.weight 32
  const std::vector<Piece> found = pieces(stage, bucket, 25, 60);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].offset, 22);  // of the first weight
  EXPECT_EQ(found[0].elements, 2);
  EXPECT_EQ(found[0].place, 25);
  EXPECT_EQ(found[1].elements, 8);
  EXPECT_EQ(found[2].elements, 25);
  EXPECT_EQ(found[2].place, 35);
}

// Bytes, in blocks of 64. DDP: weights 128 + 64 + 128 + 64 = 384, Adam twice that, one bucket of 67 * 4 -> 320.
// 1: weights lie in the bucket's order, 320; two states of the rank's 34 elements, 136 -> 192 each.
// 2: one buffer of the bucket's size serves all (there is one), and the gradient's part stays: 192.
// 3: parts of 20 and 14 elements: 128 + 64 of weights, of each state, of gradients; two buffers of 40 * 4 -> 192.
TEST(Zero, MemoryByHand) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto peak = [&](int zero) { return footprint_of(graph, sharded(zero)).peak; };
  EXPECT_DOUBLE_EQ(peak(0).optimizer.value(), 768);
  EXPECT_DOUBLE_EQ(peak(1).weights.value(), 320);
  EXPECT_DOUBLE_EQ(peak(1).optimizer.value(), 384);
  EXPECT_DOUBLE_EQ(peak(1).communication.value(), 320);
  EXPECT_DOUBLE_EQ(peak(2).optimizer.value(), 384);
  EXPECT_DOUBLE_EQ(peak(2).communication.value(), 320);
  EXPECT_DOUBLE_EQ(peak(3).optimizer.value(), 2 * (128 + 64));
  EXPECT_DOUBLE_EQ(peak(3).communication.value(), 2 * 192);
}

TEST(Zero, EachStageTakesLessOfALargeModel) {
  const Graph graph = test::mlp({256, 512, 512, 512, 512, 10}, 2);
  double before = 1e300;
  for (const int zero : {0, 1, 2, 3}) {
    Strategy strategy = sharded(zero, 8);
    strategy.bucket = Bytes{1 << 20};
    const double total = footprint_of(graph, strategy).peak.total.value();
    EXPECT_LT(total, before) << zero;
    before = total;
  }
}

// Ranks hold 1/8 of Adam's two moments of 1,053,706 elements, to rounding.
TEST(Zero, OptimizerStateIsShared) {
  const Graph graph = test::mlp({256, 512, 512, 512, 512, 10}, 2);
  const double whole = 2.0 * 4 * static_cast<double>(graph.parameter_count());
  EXPECT_NEAR(footprint_of(graph, sharded(1, 8)).peak.optimizer.value(), whole / 8, whole / 800);
}

// Weights that several units read are gathered once for all of them, and last to be complete.
TEST(Zero, ThreePricesItsGathers) {
  const Graph graph = test::mlp({64, 128, 128, 10}, 2);
  const Cluster cluster = test::cluster(2, 1);
  const auto one = predict(graph, sharded(1), cluster), three = predict(graph, sharded(3), cluster);
  ASSERT_TRUE(one && three);
  EXPECT_GT(three->breakdown.communication_total, one->breakdown.communication_total);
}

// 67 parameters, four replicas: two hold all parts, the other two again. A ring of two scatters and gathers 67 elements
// each for a pair of ranks, and each part's sum, 34 and 33 elements, is all-reduced between the two that hold it.
TEST(Zero, MayBeSharedByNeighboursAndRepeated) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = sharded(1);
  strategy.data = 4;
  strategy.global_batch = 8;
  strategy.zero_ranks = 2;
  const Plan plan = make_plan(graph, strategy).value();
  const GradientSync& sync = plan.stages[0].gradients[0];
  EXPECT_EQ(sync.parts, 2);
  EXPECT_EQ(sync.copies, 2);
  EXPECT_THAT(shard_group(plan.mesh, sync, 3), testing::ElementsAre(2, 3));
  EXPECT_THAT(copies_group(plan.mesh, sync, 3), testing::ElementsAre(1, 3));
  BytesSent all;
  for (const int rank : {0, 1, 2, 3}) {
    all.gradients += bytes_by_kind(plan, rank, Algorithm::ring).gradients;
    all.parameters += bytes_by_kind(plan, rank, Algorithm::ring).parameters;
  }
  EXPECT_EQ(all.gradients, 4 * (2 * 67 + 2 * 34 + 2 * 33));
  EXPECT_EQ(all.parameters, 4 * 2 * 67);
  strategy.zero_ranks = 4;
  EXPECT_EQ(make_plan(graph, strategy)->stages[0].gradients[0].copies, 1) << "all replicas, as without it";
  strategy.zero_ranks = 1;
  EXPECT_FALSE(make_plan(graph, strategy)->stages[0].gradients[0].sharded());
  strategy.zero_ranks = 3;
  const auto refused = make_plan(graph, strategy);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
}

TEST(Zero, IsReadWithItsRanks) {
  Strategy strategy;
  for (const std::string_view text : {"0", "3", "1:1", "3:8"}) {
    ASSERT_TRUE(parse_zero(text, strategy).has_value()) << text;
    EXPECT_EQ(zero_text(strategy), text);
  }
  for (const std::string_view text : {"", "4", "-1", "3:", "3:0", "0:2", ":2", "3:x", "3:2:2", "three"})
    EXPECT_FALSE(parse_zero(text, strategy).has_value()) << text;
}

// What stays within a node is fast: only parts leave it.
TEST(Zero, SharedWithinNodesSendsLessBetweenThem) {
  const Graph graph = test::mlp({512, 512, 512}, 2);
  Strategy strategy = sharded(3);
  strategy.data = 8;
  strategy.global_batch = 16;
  const Cluster cluster = test::cluster(8, 4);
  const auto all = predict(graph, strategy, cluster);
  strategy.zero_ranks = 4;
  const auto near = predict(graph, strategy, cluster);
  ASSERT_TRUE(all.has_value() && near.has_value());
  EXPECT_LT(near->breakdown.communication_total, all->breakdown.communication_total);
  EXPECT_GT(near->memory.weights, all->memory.weights);
}

// The norm of sharded gradients is one number summed over ranks; of whole ones every rank knows it.
TEST(Norms, AreSummedOverRanksThatHoldParts) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = sharded(0);
  strategy.clip = 1.0;
  strategy.optimizer = OptimizerKind::lamb;
  auto plan = make_plan(graph, strategy);
  EXPECT_TRUE(plan->stages[0].clip->axes.empty());
  EXPECT_EQ(norm_elements(plan->stages[0]), 0);
  strategy.zero = 1;
  plan = make_plan(graph, strategy);
  EXPECT_THAT(plan->stages[0].clip->axes, testing::ElementsAre(MeshAxis::data));
  EXPECT_EQ(norm_elements(plan->stages[0]), 2 * 4);
  // A ring of two sends n elements where n is even, and for one element the rank that holds it receives first.
  EXPECT_EQ(bytes_sent_per_step(*plan, 0, Algorithm::ring) + bytes_sent_per_step(*plan, 1, Algorithm::ring),
            2 * (67 * 4 + 8 * 4) + 2 * 4);
}

// Norms and scalings of four gradients beside their four updates, at a millisecond each.
TEST(Norms, ClippingIsPaidFor) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  strategy.clip = 1.0;
  const auto plan = make_plan(graph, strategy);
  std::vector<KernelSample> samples;
  for (KernelKey& key : kernels_of(*plan, Backend::cpu))
    samples.push_back({std::move(key), Seconds{1e-3}, 0.0, 100, {}, {}, {}});
  const auto p = predict(graph, strategy, test::cluster(1, 1, BytesPerSecond{1e9}, std::move(samples)));
  ASSERT_TRUE(p.has_value());
  EXPECT_NEAR(p->breakdown.optimizer.value(), 12e-3, 1e-9);
}

}  // namespace
}  // namespace sibyl

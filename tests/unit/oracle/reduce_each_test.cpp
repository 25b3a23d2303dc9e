// Gradients of every micro-batch, reduced at once where ranks hold parts of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/memory/footprint.h"
#include "oracle/plan/zero.h"
#include "oracle/predict.h"
#include "oracle/simulate/step.h"
#include "tests/support/clusters.h"
#include "tests/support/footprints.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

// Two replicas, two samples in each of their micro-batches.
Strategy reducing(int zero, int micro_batches) {
  Strategy strategy;
  strategy.data = 2;
  strategy.accumulation = micro_batches;
  strategy.global_batch = 4 * micro_batches;
  strategy.zero = zero;
  strategy.reduce_each = true;
  strategy.optimizer = OptimizerKind::adam;
  return strategy;
}

Strategy at_last(Strategy strategy) {
  strategy.reduce_each = false;
  return strategy;
}

// 67 parameters. Stage 2: one bucket, parts of 34 and 33; each of three reduce-scatters sends the other's part, the one
// all-gather the own. Stage 3: units of 40 and 27, parts of 20 and 14 of rank 0, 20 and 13 of rank 1; scattered three
// times, gathered six.
TEST(ReduceEach, SendsGradientsOfEveryMicroBatch) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto sent = [&](const Strategy& strategy, int rank) {
    return bytes_sent_per_step(make_plan(graph, strategy).value(), rank, Algorithm::ring);
  };
  EXPECT_EQ(sent(reducing(2, 3), 0), 4 * (3 * 33 + 34));
  EXPECT_EQ(sent(reducing(2, 3), 1), 4 * (3 * 34 + 33));
  EXPECT_EQ(sent(at_last(reducing(2, 3)), 0), 4 * (33 + 34));
  EXPECT_EQ(sent(reducing(3, 3), 0), 4 * (3 * (20 + 13) + 6 * (20 + 14)));
  EXPECT_EQ(sent(reducing(3, 3), 1), 4 * (3 * (20 + 14) + 6 * (20 + 13)));
  EXPECT_EQ(sent(reducing(2, 1), 0), sent(at_last(reducing(2, 1)), 0));
}

// Of four replicas two hold all parts: the pair scatters 67 elements, and the part's sum goes to who holds it, too.
TEST(ReduceEach, AmongNeighboursSumsPartsOverTheOthersEachTime) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = reducing(2, 3);
  strategy.data = 4, strategy.global_batch = 24, strategy.zero_ranks = 2;
  // A ring of two all-reduces 34 elements by sending 17 twice.
  EXPECT_EQ(bytes_sent_per_step(make_plan(graph, strategy).value(), 0, Algorithm::ring), 4 * (3 * (33 + 34) + 34));
}

// Parts are added up, 34 elements of rank 0; whole gradients, 32 + 8 + 24 + 3, are not.
TEST(ReduceEach, AddsUpParts) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto sums = [&](const Strategy& strategy) {
    const Plan plan = *make_plan(graph, strategy);
    const StageKernels kernels = kernels_of(plan.stages[0], Backend::cuda);
    std::vector<std::string> texts;
    for (const auto key : kernels.part_sums) texts.push_back(to_string(kernels.keys[key]));
    std::size_t whole = 0;
    for (const StageKernels::OfStep& step : kernels.steps) whole += step.parameter_sums.size();
    return std::pair(texts, whole);
  };
  EXPECT_THAT(sums(reducing(2, 2)).first, testing::ElementsAre("forward binary[34,34]->[34]:f32"));
  EXPECT_EQ(sums(reducing(2, 2)).second, 0U);
  EXPECT_THAT(sums(at_last(reducing(2, 2))).first, testing::IsEmpty());
  EXPECT_EQ(sums(at_last(reducing(2, 2))).second, 4U);
}

// Between micro-batches a rank of eight has an eighth of 1,053,706 gradients, and else all of them.
TEST(ReduceEach, KeepsPartsOfGradients) {
  const Graph graph = test::mlp({256, 512, 512, 512, 512, 10}, 2);
  const double whole = 4.0 * static_cast<double>(graph.parameter_count());
  for (const int zero : {2, 3}) {
    Strategy strategy = reducing(zero, 4);
    strategy.data = 8, strategy.global_batch = 8 * 4 * 2, strategy.bucket = Bytes{1 << 20};
    const double each = test::footprint_of(graph, strategy).peak.total.value();
    const double last = test::footprint_of(graph, at_last(strategy)).peak.total.value();
    EXPECT_NEAR(last - each, whole, 0.01 * whole) << zero << ": parts are there in either case";
    strategy.accumulation = 1, strategy.global_batch = 8 * 2;
    EXPECT_NEAR(each, test::footprint_of(graph, strategy).peak.total.value(), 0.05 * whole)
        << "as of one micro-batch, to what is alive when buckets go";
  }
}

// Each micro-batch has its messages, and takes as long as the one before; over a slow wire longer than without.
TEST(ReduceEach, EveryMicroBatchWaitsForItsMessages) {
  const Graph graph = test::mlp({64, 128, 128, 10}, 2);
  Cluster cluster = test::cluster(2, 1);
  const auto step = [&](const Strategy& strategy) {
    const Plan plan = *make_plan(graph, strategy);
    return simulate_step(plan.stages[0], price(plan, plan.stages[0], cluster), {}).total.value();
  };
  const auto messages = [&](const Strategy& strategy) {
    const Plan plan = *make_plan(graph, strategy);
    const PricedStage priced = price(plan, plan.stages[0], cluster);
    const std::vector<NamedSpan> spans = timeline(graph, plan.stages[0], priced, {});
    return std::ranges::count(spans, NamedSpan::Kind::message, &NamedSpan::kind);
  };
  for (const int zero : {2, 3}) {
    const double third = step(reducing(zero, 3)) - step(reducing(zero, 2));
    EXPECT_NEAR(step(reducing(zero, 4)) - step(reducing(zero, 3)), third, 1e-9 * third) << zero;
    EXPECT_GT(third, step(at_last(reducing(zero, 3))) - step(at_last(reducing(zero, 2)))) << zero;
    // Parts of updated parameters are gathered once by stage 2, and scattered in each.
    EXPECT_EQ(messages(reducing(zero, 4)) - messages(reducing(zero, 3)),
              messages(reducing(zero, 3)) - messages(reducing(zero, 2)))
        << zero;
    EXPECT_GT(messages(reducing(zero, 3)), messages(at_last(reducing(zero, 3)))) << zero;
  }
}

// What is waited for of messages is unsure by as much as they are, however often they are sent: over a wire that takes
// all of the step, by its half.
TEST(ReduceEach, IntervalsKnowEveryMessage) {
  const Graph graph = test::mlp({64, 128, 128, 10}, 2);
  const Cluster cluster = test::cluster(2, 1, BytesPerSecond{1e3});
  const auto spread = [&](const Strategy& strategy) {
    const Prediction p = predict(graph, strategy, cluster).value();
    return (p.interval_high - p.interval_low) / p.step_time;
  };
  EXPECT_NEAR(spread(reducing(2, 8)), spread(at_last(reducing(2, 8))), 0.05 * spread(at_last(reducing(2, 8))));
}

TEST(ReduceEach, TimelinesNameWhatAddsUp) {
  const Graph graph = test::mlp({64, 128, 128, 10}, 2);
  const Plan plan = *make_plan(graph, reducing(2, 3));
  const PricedStage priced = price(plan, plan.stages[0], test::cluster(2, 1));
  const auto spans = timeline(graph, plan.stages[0], priced, {});
  EXPECT_EQ(std::ranges::count(spans, "add up parts of gradients", &NamedSpan::name), 2);
}

TEST(ReduceEach, IsRefusedWhereThereAreNoParts) {
  const Graph graph = test::mlp({64, 128, 128, 10}, 2);
  const auto hint = [&](const Strategy& strategy) {
    const auto plan = make_plan(graph, strategy);
    return plan ? "none" : plan.error().where + ": " + plan.error().hint;
  };
  EXPECT_EQ(hint(reducing(2, 2)), "none");
  EXPECT_EQ(hint(reducing(1, 2)), "--reduce-each: --zero 2 or 3, or leave it out");
  Strategy strategy = reducing(2, 2);
  strategy.exchange = GradientExchange::at_end;
  EXPECT_EQ(hint(strategy), "--reduce-each: leave out --no-overlap");
  strategy = reducing(2, 2);
  strategy.compression = {Compression::Kind::bf16};
  EXPECT_EQ(hint(strategy), "--reduce-each: leave out one of the two");
  strategy = reducing(3, 2);
  strategy.pipeline = 2;
  EXPECT_EQ(hint(strategy), "--reduce-each: leave it out");
}

}  // namespace
}  // namespace sibyl

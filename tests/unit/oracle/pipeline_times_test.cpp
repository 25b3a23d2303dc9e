// Pipelines in time and memory: idle time by the papers' formulas, what is in flight.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "oracle/cost/kernels.h"
#include "oracle/cost/plan_for.h"
#include "oracle/memory/footprint.h"
#include "oracle/predict.h"
#include "oracle/simulate/pipeline.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace sibyl {
namespace {

Strategy pipelined(int stages, int micro_batches, PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward,
                   int chunks = 1) {
  Strategy strategy;
  strategy.pipeline = stages;
  strategy.schedule = schedule;
  strategy.chunks = chunks;
  strategy.accumulation = micro_batches;
  strategy.global_batch = 2 * micro_batches;
  return strategy;
}

// `layers` linear layers of one size, cut so that each stage has as many; the loss is in the last.
Graph even_mlp(int layers) { return test::mlp(std::vector<std::int64_t>(static_cast<std::size_t>(layers) + 1, 8), 2); }

Plan plan_of(const Graph& graph, Strategy strategy, int layers) {
  const int stages = strategy.stages();
  for (int s = 1; s < stages; ++s) strategy.stage_starts.push_back("fc" + std::to_string(s * layers / stages + 1));
  return make_plan(graph, strategy).value();
}

// Every stage alike, whatever its kernels: forward f; backward b, of which w is the gradients of weights; updates free;
// links of l.
std::vector<PricedStage> even_prices(const Plan& plan, double f, double b, double w, double l) {
  std::vector<PricedStage> priced;
  for (const Stage& stage : plan.stages) {
    PricedStage p;
    p.kernels.steps.resize(stage.steps.size());
    p.exchanges.resize(stage.steps.size());
    const auto add = [&](double seconds) {
      p.prices.push_back({{{Seconds{seconds}, 0.0, Provenance::measured}, {}, {}}, Bound::compute});
      p.kernels.keys.emplace_back();
      return p.prices.size() - 1;
    };
    p.kernels.steps[0].forward = add(f);
    p.kernels.steps[0].backward = add(splits_backward(stage) ? b - w : b);
    if (splits_backward(stage)) p.kernels.steps[0].backward_weight = add(w);
    const Estimate link{Seconds{l}, 0.0, Provenance::measured};
    if (!stage.sends.empty()) p.send_forward = link;
    if (!stage.receives.empty()) p.send_backward = link;
    priced.push_back(std::move(p));
  }
  return priced;
}

SimulatedPipeline simulated(const Strategy& strategy, double f, double b, double w, double l = 0) {
  const int layers = strategy.stages();
  const Graph graph = even_mlp(layers);
  const Plan plan = plan_of(graph, strategy, layers);
  return simulate_pipeline(plan, even_prices(plan, f, b, w, l), {});
}

// Two stages, four micro-batches: the first ends at (4 + 1) 3 = 15, the last one backward, 2, before. Both know their norms
// half a second later; what is left begins when both do: the sum over stages for 0.25, the update for 1.
TEST(PipelineTimes, ClippingWaitsForTheNormsOfAllStages) {
  Strategy strategy = pipelined(2, 4);
  strategy.clip = 1;
  const Graph graph = even_mlp(2);
  const Plan plan = plan_of(graph, strategy, 2);
  std::vector<PricedStage> priced = even_prices(plan, 1, 2, 0, 0);
  for (PricedStage& p : priced) {
    const auto add = [&](double seconds) {
      p.prices.push_back({{{Seconds{seconds}, 0.0, Provenance::measured}, {}, {}}, Bound::compute});
      p.kernels.keys.emplace_back();
      return p.prices.size() - 1;
    };
    p.kernels.norms = {add(0.5)};
    p.kernels.updates = {add(1)};
    p.clip_norm = CollectiveEstimate{};
    p.clip_norm->time.time = Seconds{0.25};
  }
  const SimulatedPipeline clipped = simulate_pipeline(plan, priced, {});
  EXPECT_NEAR(clipped.coordinates[0].step.total.value(), 15 + 0.5 + 0.25 + 1, 1e-9);
  EXPECT_NEAR(clipped.coordinates[1].step.total.value(), 15 + 0.5 + 0.25 + 1, 1e-9);
  EXPECT_NEAR(clipped.coordinates[1].tail.wait.value(), 2, 1e-9);
}

// The first stage makes a and b of it, the second adds both: what comes back for a is added to what b's backward makes.
TEST(PipelineTimes, WhatComesBackIsAddedToAStagesOwn) {
  test::Network net("skip", 2);
  const TensorId a = net.linear(net.input({2, 8}), 8), b = net.linear(a, 8);
  const Graph graph = net.finish(net.linear(net.add(a, b), 8), 1);
  Strategy strategy = pipelined(2, 4);
  strategy.stage_starts = {graph.operations()[2].name};
  const Plan plan = make_plan(graph, strategy).value();
  const auto sums = [&](std::size_t stage) {
    std::size_t count = 0;
    for (const StageKernels::OfStep& step : kernels_of(plan.stages[stage], Backend::cpu).steps) count += step.sums.size();
    return count;
  };
  EXPECT_EQ(sums(0), 1U);
  EXPECT_EQ(sums(1), 0U);
}

// (m + S - 1)(f + b): GPipe, Huang et al., section 2.3: (S - 1) / (m + S - 1) of the time is idle.
TEST(PipelineTimes, GPipeIdlesThroughAllStagesButOne) {
  const SimulatedPipeline p = simulated(pipelined(4, 8, PipelineSchedule::gpipe), 1, 2, 0);
  EXPECT_NEAR(p.step.total.value(), (8 + 3) * 3, 1e-9);
  for (const CoordinateTimes& c : p.coordinates) EXPECT_LE(c.step.breakdown.bubble.value(), 9 + 1e-9);
  EXPECT_NEAR(p.step.breakdown.bubble.value(), 9, 1e-9);
  EXPECT_NEAR(p.step.breakdown.forward.value(), 8, 1e-9);
  EXPECT_NEAR(p.step.breakdown.backward.value(), 16, 1e-9);
}

TEST(PipelineTimes, OneForwardOneBackwardIdlesAsLong) {
  EXPECT_NEAR(simulated(pipelined(4, 8), 1, 2, 0).step.total.value(), (8 + 3) * 3, 1e-9);
  EXPECT_NEAR(simulated(pipelined(4, 2), 1, 2, 0).step.total.value(), (2 + 3) * 3, 1e-9);
}

// Stages of half the size, two of them on each device: m (f + b) with f and b of both, and (S - 1) of a half's.
TEST(PipelineTimes, InterleavedIdlesThroughSmallerStages) {
  const SimulatedPipeline p = simulated(pipelined(4, 8, PipelineSchedule::interleaved, 2), 0.5, 1, 0);
  EXPECT_NEAR(p.step.total.value(), 8 * 3 + 3 * 1.5, 1e-9);
  EXPECT_NEAR(p.step.breakdown.bubble.value(), 3 * 1.5, 1e-9);
}

// Qi et al., table 2: (S - 1)(T_F + T_B - T_W), T_B being of inputs alone. Here F = B = W = 1: 3; with F = 1, B = 1.5 and
// W = 0.5: 3 x 2.
TEST(PipelineTimes, ZeroBubbleFillsIdleTimeWithWeights) {
  const auto schedule = PipelineSchedule::zero_bubble;
  EXPECT_NEAR(simulated(pipelined(4, 8, schedule), 1, 2, 1).step.total.value(), 8 * 3 + 3, 1e-9);
  EXPECT_NEAR(simulated(pipelined(4, 8, schedule), 1, 2, 0.5).step.total.value(), 8 * 3 + 6, 1e-9);
}

// GPipe's links are on the way in and on the way out: 2 (S - 1) l. In 1F1B every second micro-batch also waits for the way
// to the neighbour and back: two stages' work and two links for two micro-batches.
TEST(PipelineTimes, LinksAreWaitedFor) {
  const SimulatedPipeline gpipe = simulated(pipelined(4, 8, PipelineSchedule::gpipe), 1, 2, 0, 0.1);
  EXPECT_NEAR(gpipe.step.total.value(), 33 + 0.6, 1e-9);
  EXPECT_GT(simulated(pipelined(4, 8), 1, 2, 0, 0.1).step.total.value(), 33.6);
  const TimeBreakdown& parts = gpipe.step.breakdown;
  EXPECT_NEAR((parts.forward + parts.backward + parts.bubble + parts.communication_exposed).value(), 33.6, 1e-9);
}

// Whatever the strategy, the parts add up to the whole, and each coordinate's turns follow one another.
RC_GTEST_PROP(PipelineTimes, PartsAddUpToTheWhole, ()) {
  const auto schedule = *rc::gen::element(PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward,
                                          PipelineSchedule::interleaved, PipelineSchedule::zero_bubble);
  const int stages = *rc::gen::inRange(2, 7);
  const int chunks = schedule == PipelineSchedule::interleaved ? *rc::gen::inRange(2, 4) : 1;
  const int layers = stages * chunks;
  const Graph graph = even_mlp(layers);
  const Plan plan = plan_of(graph, pipelined(stages, stages * *rc::gen::inRange(1, 40), schedule, chunks), layers);
  std::vector<PricedStage> priced = even_prices(plan, 1, 2, 0.8, 0.01 * *rc::gen::inRange(0, 100));
  const int most = *rc::gen::element(5, 40, 400);
  const auto vary = [&](Seconds& time) { time *= 1 + 0.01 * *rc::gen::inRange(0, most + 1); };
  for (PricedStage& stage : priced) {
    for (PricedKernel& kernel : stage.prices) vary(kernel.estimate.time.time);
    if (stage.send_forward) vary(stage.send_forward->time);
    if (stage.send_backward) vary(stage.send_backward->time);
  }
  const SimulatedPipeline exact = simulate_pipeline(plan, priced, {});
  for (const CoordinateTimes& c : exact.coordinates) {
    const TimeBreakdown& b = c.step.breakdown;
    const Seconds sum = b.forward + b.backward + b.optimizer + b.communication_exposed + b.bubble + b.host;
    RC_ASSERT(std::abs(sum / c.step.total - 1) < 1e-9);
    for (std::size_t i = 1; i < c.turns.size(); ++i)
      RC_ASSERT(c.turns[i].span.start >= c.turns[i - 1].span.end - Seconds{1e-12});
  }
}

// Two equal stages, m micro-batches of one sample: 1F1B holds two of them on the first device and one on the second,
// GPipe all. Of a layer of 64 features what is kept is the ReLU's result, 64 x 4 bytes and a multiple of 64.
TEST(PipelineMemory, GrowsWithWhatIsInFlight) {
  const Graph graph = test::mlp({64, 64, 64, 64, 64}, 1);
  const auto peak = [&](PipelineSchedule schedule, int micro_batches, int coordinate) {
    Strategy strategy = pipelined(2, micro_batches, schedule);
    strategy.global_batch = micro_batches;
    strategy.stage_starts = {"fc3"};
    const Plan plan = make_plan(graph, strategy).value();
    const Cluster cluster = test::cluster(2, 1);
    return footprint(plan, price(plan, cluster), coordinate, cluster.kernels.device()).peak.total.value();
  };
  constexpr auto one = PipelineSchedule::one_forward_one_backward, all = PipelineSchedule::gpipe;
  EXPECT_EQ(peak(one, 8, 0), peak(one, 4, 0));
  EXPECT_EQ(peak(one, 8, 1), peak(one, 4, 1));
  // A micro-batch more in flight on the first device: the batch and both ReLUs' results.
  EXPECT_EQ(peak(all, 8, 0) - peak(all, 7, 0), 3 * 256);
  // The most is there in the second backward, when parameters have their gradients: of 8 GPipe has 7 left then, 1F1B 2.
  EXPECT_EQ(peak(all, 8, 0) - peak(one, 8, 0), 5 * 3 * 256);
}

// The first stage ends in the second linear layer, whose result of 64 x 2 bytes its own backward does not need. Every
// micro-batch on its way holds it all the same, but where models are held in two bytes.
TEST(PipelineMemory, WhatWasSentIsFreedAsMegatronDoes) {
  const Graph graph = test::mlp({64, 64, 64, 64, 64}, 1);
  const auto peak = [&](int micro_batches, bool half_weights) {
    Strategy strategy = pipelined(2, micro_batches, PipelineSchedule::gpipe);
    strategy.global_batch = micro_batches;
    strategy.stage_starts = {"fc2.relu"};
    strategy.precision = Precision::bf16;
    strategy.half_weights = half_weights;
    const Plan plan = make_plan(graph, strategy).value();
    const Cluster cluster = test::cluster(2, 1);
    return footprint(plan, price(plan, cluster), 0, cluster.kernels.device()).peak.total.value();
  };
  const auto of_one_more = [&](bool half_weights) { return peak(8, half_weights) - peak(7, half_weights); };
  // Where weights are f32, each micro-batch also keeps its copy of fc2's in bf16; fc1's backward needs none.
  EXPECT_EQ(of_one_more(false) - of_one_more(true), 128 + 2 * 64 * 64);
}

// Each micro-batch's inputs go with its backward, also where they are wanted once more to run its forward again.
TEST(PipelineMemory, DoesNotGrowWithMicroBatchesThatRunAgain) {
  const Graph graph = test::mlp({24, 24, 24, 24}, 4);
  const auto peak = [&](int micro_batches, int coordinate) {
    Strategy strategy = pipelined(3, micro_batches, PipelineSchedule::interleaved);
    strategy.global_batch = 2 * micro_batches;
    strategy.chunks = 2;
    strategy.recompute = Recompute::full;
    const Plan plan = make_plan(graph, strategy).value();
    const Cluster cluster = test::cluster(3, 1);
    return footprint(plan, price(plan, cluster), coordinate, cluster.kernels.device(), MicroBatches::all).peak.total.value();
  };
  for (const int coordinate : {0, 1, 2}) EXPECT_EQ(peak(12, coordinate), peak(24, coordinate)) << coordinate;
}

TEST(PipelinePrediction, ReportsStagesAndWhatTheyIdle) {
  const Graph graph = even_mlp(8);
  const auto p = predict(graph, pipelined(4, 4), test::cluster(4, 1));
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->devices, 4);
  EXPECT_EQ(p->parallel, "data=1,pipeline=4");
  EXPECT_EQ(p->schedule, "1f1b");
  ASSERT_EQ(p->stages.size(), 4U);
  EXPECT_GT(p->breakdown.bubble.value(), 0);
  Bytes fullest;
  for (const StageCost& stage : p->stages) fullest = std::max(fullest, stage.memory);
  EXPECT_EQ(p->memory.total, fullest);
  // A stage in the middle sends 2 x 8 results of 4 bytes on, and as many gradients back, for each of 4 micro-batches.
  EXPECT_EQ(p->bytes_sent, 4 * 2 * 64);
  const TimeBreakdown& b = p->breakdown;
  EXPECT_NEAR((b.forward + b.backward + b.optimizer + b.communication_exposed + b.bubble + b.host).value(),
              p->step_time.value(), 1e-9);
}

// Every kernel takes 1 ms. Linear layers of 256 samples and 1,024 features are bound by arithmetic, ReLUs, the loss and
// updates by memory.
Cluster timed_cluster(const Graph& graph, const Strategy& strategy) {
  std::vector<KernelSample> samples;
  for (KernelKey& key : kernels_of(make_plan(graph, strategy).value(), Backend::cpu))
    samples.push_back({std::move(key), Seconds{1e-3}, 0.0, 100, {}, {}, {}});
  return test::cluster(strategy.pipeline, 1, BytesPerSecond{1e13}, std::move(samples));
}

// Four stages of a linear layer and what follows it, one micro-batch: each in turn works 2 + 2 ms, and a device idles 12 of
// 18 ms, updates included. Arithmetic twice as fast would save 4 ms, memory 5 ms; half the bubble 6 ms.
TEST(PipelinePrediction, NamesTheBubble) {
  const Graph graph = test::mlp({1024, 1024, 1024, 1024, 1024}, 256);
  Strategy strategy = pipelined(4, 1);
  strategy.global_batch = 256;
  strategy.stage_starts = {"fc2", "fc3", "fc4"};
  const auto p = predict(graph, strategy, timed_cluster(graph, strategy));
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->bottleneck.name, "pipeline bubble: few micro-batches for as many stages");
  EXPECT_NEAR(p->bottleneck.share, 12.0 / 18, 0.01);  // links take a little
  EXPECT_NEAR(p->bottleneck.relief, 6.0 / 18, 0.01);
}

// Five of eight layers on the first of four devices, 16 micro-batches: it is hardly ever idle, and even stages would take
// less than half as long.
TEST(PipelinePrediction, NamesTheImbalance) {
  const Graph graph = test::mlp(std::vector<std::int64_t>(9, 1024), 256);
  Strategy strategy = pipelined(4, 16);
  strategy.global_batch = 256 * 16;
  strategy.stage_starts = {"fc6", "fc7", "fc8"};
  const auto p = predict(graph, strategy, timed_cluster(graph, strategy));
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->bottleneck.name, "pipeline imbalance: one stage takes longer than the others");
  EXPECT_GT(p->bottleneck.relief, 0.5);
}

// With tensor parallelism within the stages, and replicas of all: exchanges, links and buckets are all counted.
TEST(PipelinePrediction, CombinesWithOtherAxes) {
  const Graph graph = even_mlp(8);
  Strategy strategy = pipelined(2, 4);
  strategy.tensor = 2;
  strategy.data = 2;
  strategy.global_batch *= 2;
  const auto p = predict(graph, strategy, test::cluster(8, 1));
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->devices, 8);
  const Plan plan = make_plan(graph, strategy).value();
  EXPECT_EQ(plan.mesh.group(1, MeshAxis::pipeline), (std::vector<int>{1, 5}));
  EXPECT_GT(p->bytes_sent, 0);
  EXPECT_LT(p->memory.weights, predict(graph, pipelined(2, 4), test::cluster(2, 1))->memory.weights);
}

// Eight layers whose kernels take a V100 less than its host takes to issue them, the last and the loss twenty times as
// long as the others: what stages have alike is operations.
TEST(PipelineTimes, StagesAreBalancedByWhatTheHostTakes) {
  const Graph graph = test::mlp({8, 8, 8, 8, 8, 8, 8, 8, 4096}, 2);
  Strategy strategy = pipelined(2, 4);
  strategy.global_batch = 4 * 256;
  const Cluster cluster = load_cluster("dgx1-v100").value();
  const Plan plan = plan_for(graph, strategy, cluster).value();
  ASSERT_EQ(plan.stages.size(), 2U);
  const auto first = static_cast<double>(plan.stages[0].steps.size());
  const auto all = first + static_cast<double>(plan.stages[1].steps.size());
  EXPECT_NEAR(first / all, 0.5, 0.1);
  KernelPrices kernels(cluster);
  for (const Stage& stage : plan.stages)
    for (const KernelKey& key : kernels_of(stage, Backend::cuda).keys)
      EXPECT_LT(kernels.of(key, strategy).estimate.time.time, cluster.kernels.device().dispatch * 2.0);
}

}  // namespace
}  // namespace sibyl

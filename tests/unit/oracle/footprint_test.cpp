// Memory of a step, allocation by allocation.
#include "oracle/memory/footprint.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/training/gradient_aliasing.h"
#include "oracle/memory/recorder.h"
#include "tests/support/clusters.h"
#include "tests/support/footprints.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

using test::footprint_of;

// Blocks of 64 B. Static: weights fc1 128 + 32->64, fc2 96->128 + 12->64 = 384; batch x 32->64, targets 16->64 = 128.
// Forward keeps relu.out (64, for itself and fc2) and the loss's log-probabilities (24->64).
// Backward: loss makes d fc2.y (64), frees the log-probabilities. fc2 makes d relu (64), d weight 128, d bias 64, frees
// d fc2.y and its hold on relu.out. relu makes d fc1.y 64, frees relu.out and d relu. fc1 makes d weight 128, d bias 64
// beside d fc1.y 64: gradients 384, activations 128 + 64: 384 + 384 + 192 = 960, the peak.
TEST(Footprint, OfAnMlpByHand) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  const Footprint f = footprint_of(graph, strategy);
  EXPECT_EQ(f.peak_step, "backward");
  EXPECT_DOUBLE_EQ(f.peak.weights.value(), 384);
  EXPECT_DOUBLE_EQ(f.peak.gradients.value(), 384);
  EXPECT_DOUBLE_EQ(f.peak.activations.value(), 192);
  EXPECT_DOUBLE_EQ(f.peak.total.value(), 960);
}

// Per replica one bucket for all 67 gradients, and two states an element, each parameter's rounded on its own.
TEST(Footprint, AdamAndBucketsAddTheirOwn) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 4;
  strategy.data = 2;
  strategy.optimizer = OptimizerKind::adam;
  const Footprint f = footprint_of(graph, strategy);
  EXPECT_DOUBLE_EQ(f.peak.communication.value(), 320);               // 67 * 4 = 268 -> 320
  EXPECT_DOUBLE_EQ(f.peak.optimizer.value(), 2 * (128 + 64 + 128 + 64));  // 32, 8, 24, 3 elements: 128, 32, 96, 12 B, rounded
}

// A model held in two bytes: its gradients have no second copy, whether the exchange goes on beside backward or after
// it, summed whole or by parts. Of 2048, 64, 192 and 3 parameters they take 4096, 128, 384 and 6 -> 64 B. With ZeRO 2 they
// leave for the one buffer: 2307 * 2 = 4614 -> 4672.
TEST(Footprint, GradientsOfTwoBytesLieInTheirBuckets) {
  const Graph graph = test::mlp({32, 64, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 4;
  strategy.data = 2;
  strategy.optimizer = OptimizerKind::adam;
  strategy.precision = Precision::bf16;
  strategy.half_weights = true;
  for (const GradientExchange exchange : {GradientExchange::overlapped, GradientExchange::at_end})
    for (strategy.zero = 0; strategy.zero < 2; ++strategy.zero) {
      strategy.exchange = exchange;
      const Footprint f = footprint_of(graph, strategy);
      EXPECT_DOUBLE_EQ(f.peak.communication.value(), 0) << strategy.zero;
      EXPECT_DOUBLE_EQ(f.peak.gradients.value(), 4096 + 128 + 384 + 64) << strategy.zero;
    }
  strategy.zero = 2;
  EXPECT_DOUBLE_EQ(footprint_of(graph, strategy).peak.communication.value(), 4672);
  strategy.fp32_gradients = true;  // 2307 * 4 = 9228 -> 9280
  EXPECT_DOUBLE_EQ(footprint_of(graph, strategy).peak.communication.value(), 9280);
}

// And they are there from the beginning. With a batch of 1024 the most is held when backward has just begun: in f32
// there are the last layer's gradients alone by then, of 192 and 3 parameters, 768 and 12 -> 64 B.
TEST(Footprint, BucketsOfGradientsAreThereBeforeBackward) {
  const Graph graph = test::mlp({32, 64, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 1024;
  strategy.precision = Precision::bf16;
  EXPECT_DOUBLE_EQ(footprint_of(graph, strategy).peak.gradients.value(), 768 + 64);
  strategy.half_weights = true;
  for (strategy.zero = 0; strategy.zero < 2; ++strategy.zero)
    EXPECT_DOUBLE_EQ(footprint_of(graph, strategy).peak.gradients.value(), 4096 + 128 + 384 + 64) << strategy.zero;
}

// The second micro-batch's gradients of weights are added to the first one's. At fc2's backward there are, beside weights and
// gradients of 384 each and the inputs: relu.out, d fc2.y and d relu of 64 each, and what is to be added, 128 + 64; the
// kernel's workspace comes on top of all of it, for its results are there before it ends.
TEST(Footprint, WorkspaceIsThereBesideWhatIsToBeAdded) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 4;
  strategy.accumulation = 2;
  const Bytes workspace{1024};
  const Footprint without = footprint_of(graph, strategy), with = footprint_of(graph, strategy, workspace);
  EXPECT_DOUBLE_EQ(without.peak.gradients.value(), 384);
  EXPECT_DOUBLE_EQ((with.peak.total - without.peak.total).value(), workspace.value());
  EXPECT_DOUBLE_EQ(with.peak.workspace.value(), workspace.value());
}

// x -> W -> W -> loss, [2, 16] all along.
Graph tied(std::int64_t batch) {
  Graph graph;
  graph.name = "tied";
  const auto add = [&](const char* name, Shape shape, TensorKind kind) {
    return graph.add(Tensor{name, std::move(shape), DType::f32, kind, {}, {}, 0});
  };
  const TensorId x = graph.add(Tensor{"x", {batch, 16}, DType::f32, TensorKind::input, 0, {}, 0});
  const TensorId w = add("w", {16, 16}, TensorKind::parameter);
  const TensorId y = add("y", {batch, 16}, TensorKind::activation), z = add("z", {batch, 16}, TensorKind::activation);
  graph.add(Operation{"one", Linear{}, {x, w}, {y}, {}});
  graph.add(Operation{"two", Linear{}, {y, w}, {z}, {}});
  const TensorId targets = graph.add(Tensor{"targets", {batch}, DType::i64, TensorKind::input, 0, {}, 16});
  graph.loss = add("loss", {}, TensorKind::activation);
  graph.add(Operation{"loss", CrossEntropy{1}, {z, targets}, {graph.loss}, {}});
  return graph.finish(batch) ? graph : Graph{};
}

// Weights 1024, x 128, targets 16 -> 64. Backward of `two` leaves d y, 128, and the first gradient of w, 1024. That of
// `one` makes the second beside it: 1216 + 128 + 2 * 1024. Added in place that is all, in a third it is 1024 more; and
// what an earlier micro-batch left, which the two are added to only when they have met, 1024.
TEST(Footprint, GradientsOfATiedWeightMeetBesideWhatItHas) {
  const Graph graph = tied(2);
  const Cluster on = test::cluster(1, 1);
  for (const bool apart : {false, true})
    for (const int micro_batches : {1, 2}) {
      Strategy strategy;
      strategy.global_batch = 2 * micro_batches;
      strategy.accumulation = micro_batches;
      const Plan plan = make_plan(graph, strategy).value();
      PricedStage priced = price(plan, plan.stages.at(0), on);
      for (PricedKernel& kernel : priced.prices) kernel.estimate.workspace = {};
      Device device = on.kernels.device();
      device.sums_apart = apart;
      const Footprint f = footprint(plan.stages.at(0), priced, strategy, device);
      EXPECT_DOUBLE_EQ(f.peak.total.value(), 1216 + 128 + (2 + (apart ? 1 : 0) + micro_batches - 1) * 1024)
          << apart << " " << micro_batches;
    }
}

// fc2 is split by rows: behind it each of two ranks has a summand, [8, 24], 768 B. A segment that begins with their sum
// keeps the summand as it is, and the sum lies beside it; where it begins behind the sum, that is made where the
// summand lies.
TEST(Footprint, SumsBesideWhatASegmentKeeps) {
  const Graph graph = test::mlp({4, 12, 24, 5}, 8);
  Strategy strategy;
  strategy.global_batch = 8;
  strategy.tensor = 2;
  Plan plan = make_plan(graph, strategy).value();
  Stage& stage = plan.stages.at(0);
  const auto adds_up = [](const Step& step) {
    const auto* exchange = std::get_if<Exchange>(&step);
    return exchange != nullptr && exchange->forward.motion == Motion::all_reduce;
  };
  const auto sum = static_cast<std::size_t>(std::ranges::find_if(stage.steps, adds_up) - stage.steps.begin());
  ASSERT_LT(sum, stage.steps.size());
  const Cluster on = test::cluster(2, 1);
  const auto most_at_the_sum = [&](std::size_t begin) {
    stage.recomputed = {Segment{begin, stage.steps.size() - 1}};
    const PricedStage priced = price(plan, stage, on);
    MemoryRecorder recorder;
    footprint(stage, priced, strategy, on.kernels.device(), MicroBatches::all, &recorder);
    const StepPlace place{StepPlace::What::pass, &stage, Turn::Kind::forward, 0, sum};
    const auto found = std::ranges::find(recorder.places(), place, &MemoryRecorder::Most::place);
    return found != recorder.places().end() ? found->total : 0.0;
  };
  EXPECT_DOUBLE_EQ(most_at_the_sum(sum) - most_at_the_sum(sum + 1), 768);
}

TEST(Footprint, MoreSamplesNeverTakeLess) {
  const Graph graph = test::mlp({4, 8, 8, 3}, 2);
  Bytes before;
  for (std::int64_t batch = 1; batch <= 64; batch *= 2) {
    Strategy strategy;
    strategy.global_batch = batch;
    const Bytes total = footprint_of(graph, strategy).peak.total;
    EXPECT_GE(total, before) << batch;
    before = total;
  }
}

TEST(Aliasing, AdditionPassesItsGradientOnUnlessBroadcast) {
  const Signature same{Binary{BinaryKind::add}, {{2, 3}, {2, 3}}, {{2, 3}}, DType::f32};
  EXPECT_TRUE(passes_gradient_through(same, 0));
  EXPECT_TRUE(passes_gradient_through(same, 1));
  const Signature broadcast{Binary{BinaryKind::add}, {{2, 3}, {3}}, {{2, 3}}, DType::f32};
  EXPECT_TRUE(passes_gradient_through(broadcast, 0));
  EXPECT_FALSE(passes_gradient_through(broadcast, 1));
  const Signature difference{Binary{BinaryKind::sub}, {{2, 3}, {2, 3}}, {{2, 3}}, DType::f32};
  EXPECT_FALSE(passes_gradient_through(difference, 1)) << "negated";
}

TEST(Aliasing, ASumsGradientIsWrittenOut) {
  const Signature sum{Reduce{ReduceKind::sum, {1}, false}, {{2, 3}}, {{2}}, DType::f32};
  EXPECT_FALSE(passes_gradient_through(sum, 0));
}

}  // namespace
}  // namespace sibyl

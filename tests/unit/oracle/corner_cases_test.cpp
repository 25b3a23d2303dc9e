// Cases at the edge, which other predictors are known to get wrong: each by hand.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/onnx/import.h"
#include "models/zoo/families.h"
#include "oracle/cost/price.h"
#include "oracle/predict.h"
#include "oracle/search/search.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/strategies.h"

namespace sibyl {
namespace {

using test::pipelined;

// Every kernel of these plans at 1 ms, on a network whose messages take microseconds.
Cluster at_one_millisecond(const Graph& graph, const std::vector<Strategy>& strategies, int devices) {
  std::vector<KernelSample> samples;
  for (const Strategy& strategy : strategies)
    for (KernelKey& key : kernels_of(*make_plan(graph, strategy), Backend::cpu))
      samples.push_back({std::move(key), Seconds{1e-3}, 0.0, 100, {}, {}, {}});
  return test::cluster(1, devices, BytesPerSecond{1e10}, std::move(samples));
}

// fc1 | relu1 | fc2 loss: the second stage has nothing to update, to exchange, or to keep but activations.
TEST(CornerCases, AStageMayHaveNoWeights) {
  const Graph graph = test::mlp({8, 8, 8}, 2);
  for (const int zero : {0, 1, 2, 3}) {
    Strategy strategy = pipelined(3, 4);
    strategy.data = 2, strategy.global_batch *= 2, strategy.zero = zero;
    strategy.optimizer = OptimizerKind::adam;
    strategy.stage_starts = {"fc1.relu", "fc2"};
    const auto plan = make_plan(graph, strategy);
    ASSERT_TRUE(plan.has_value());
    EXPECT_TRUE(plan->stages[1].updates.empty());
    EXPECT_TRUE(plan->stages[1].gradients.empty());
    const auto p = predict(graph, strategy, test::cluster(1, 6));
    ASSERT_TRUE(p.has_value()) << p.error().message;
    EXPECT_GT(p->stages[0].memory, p->stages[1].memory);
    EXPECT_LT(p->stages[1].memory, p->stages[2].memory);
  }
}

// fc1 by columns: 128 x 64 / 2 weights and 64 of its biases; fc2 by rows: 32 x 128 / 2, and all 32 biases, 6,240 elements a
// rank. Of Adam's two states a replica's rank holds one half of that, not of the whole model's 12,448.
TEST(CornerCases, ZeroSharesWhatTensorRanksHold) {
  const Graph graph = test::mlp({64, 128, 32}, 2);
  Strategy strategy;
  strategy.data = strategy.tensor = 2;
  strategy.global_batch = 4;
  strategy.optimizer = OptimizerKind::adam;
  const Cluster cluster = test::cluster(1, 4);
  const double states = 2 * 4 * 6240, rounding = 2 * 4 * 64;
  EXPECT_NEAR(predict(graph, strategy, cluster)->memory.optimizer.value(), states, rounding);
  for (const int zero : {1, 2}) {
    strategy.zero = zero;
    EXPECT_NEAR(predict(graph, strategy, cluster)->memory.optimizer.value(), states / 2, rounding) << zero;
  }
}

// Four layers of a linear and a ReLU or the loss, one a stage, each kernel 1 ms: forward of one micro-batch takes 8 ms and
// backward as long, one stage after the other; then each stage updates 2 parameters. Of two micro-batches the last stage is
// through the second one's forward at 8 + 2 + 2 = 12; its backward adds 2 gradients to the first's in each stage, 4 x 4 ms.
TEST(CornerCases, ABatchMayBeSmallerThanThePipelineIsDeep) {
  const Graph graph = test::mlp({8, 8, 8, 8, 8}, 2);
  const auto step = [&](std::int64_t micro_batches) {
    Strategy strategy = pipelined(4, micro_batches);
    strategy.stage_starts = {"fc2", "fc3", "fc4"};
    return predict(graph, strategy, at_one_millisecond(graph, {strategy}, 4)).value();
  };
  const Prediction one = step(1), two = step(2);
  EXPECT_NEAR(one.step_time.value(), 18e-3, 0.2e-3);
  EXPECT_NEAR(one.breakdown.bubble.value(), 12e-3, 0.2e-3);  // all but its own 4
  EXPECT_NEAR(two.step_time.value(), 12e-3 + 16e-3 + 2e-3, 0.2e-3);
}

// Samples of 6 tokens of 8 features: a linear layer, a router over four experts, two for each token, of a hidden layer
// of five. With a factor of 1 each expert has 6 x 2 / 4 = 3 slots a sample.
Graph small_experts(std::int64_t batch) {
  zoo::Builder b("experts");
  const zoo::Value input = b.input("x", {zoo::batch_extent, 6, 8}), before = b.parameter("before", {8, 8});
  const zoo::Value x = b.apply("MatMul", {}, {input, before}, input.shape);
  const zoo::Value gate = b.parameter("gate", {8, 4});
  const zoo::Value scores = b.apply("MatMul", {}, {x, gate}, {zoo::batch_extent, 6, 4});
  const zoo::Value flat = b.apply("Reshape", {}, {scores, b.ints({-1, 4})}, {zoo::batch_extent, 4});
  const zoo::Value first = b.parameter("fc1", {4, 5, 8}), none, second = b.parameter("fc2", {4, 8, 5});
  b.output(b.apply("com.microsoft:MoE", "moe", {x, flat, first, none, second}, x.shape,
                   {{"k", std::int64_t{2}}, {"activation_type", std::string("relu")}}));
  ImportOptions options;
  options.batch = batch;
  options.loss = LossKind::mean_squared_error;
  return inspect_onnx_bytes(b.bytes(), "experts", options)->graph;
}

// tensor=1, expert=2. Each rank has two of four samples and two of four experts. Its samples fill 4 x 6 slots of 8
// features, 768 bytes, of which half changes hands, there and back, forward and backward: 4 x 384. The loss is the
// ranks' mean: 4 bytes around a ring of two. Of what all have, 64 + 32 weights, gradients are summed: 96 x 4 bytes
// around the same ring; experts' meet nobody.
//
// One device with two samples runs 13 operations forward (linear, router, two reshapes, softmax, choice, dispatch, two
// layers of experts and what is between them, combine, reshape, loss) and as many backward, adds two gradients of what
// the router and the experts read, and updates four weights: 31 kernels of 1 ms. A rank runs ten more: the loss is
// halved, forward and backward, each trip packs once what it moves, and the two weights' gradients are copied into
// their bucket and out of it.
TEST(CornerCases, ExpertsWithoutTensorRanks) {
  const Graph graph = small_experts(4);
  Strategy strategy;
  strategy.expert = 2;
  strategy.global_batch = 4;
  strategy.exchange = GradientExchange::at_end;
  const Plan plan = make_plan(graph, strategy).value();
  const Stage& stage = plan.stages[0];
  std::vector<std::pair<Motion, std::int64_t>> moved;  // elements that a rank gives
  for (const Step& step : stage.steps)
    if (const auto* exchange = std::get_if<Exchange>(&step)) {
      EXPECT_EQ(exchange->axis, MeshAxis::expert);
      moved.emplace_back(exchange->forward.motion, element_count(stage[exchange->input].shape));
    }
  const std::pair trip{Motion::all_to_all, std::int64_t{4 * 6 * 8}}, loss{Motion::all_reduce, std::int64_t{1}};
  EXPECT_EQ(moved, (std::vector{trip, trip, loss}));
  std::map<std::string, Shape> held;
  for (const LocalTensor& tensor : stage.tensors)
    if (tensor.kind == TensorKind::parameter) held[graph[tensor.origin].name] = tensor.shape;
  EXPECT_EQ(held, (std::map<std::string, Shape>{
                      {"before", {8, 8}}, {"gate", {8, 4}}, {"fc1", {2, 5, 8}}, {"fc2", {2, 8, 5}}}));

  const BytesSent sent = bytes_by_kind(plan, 0, Algorithm::ring);
  EXPECT_EQ(sent.exchanges, 4 * 384 + 4);
  EXPECT_EQ(sent.gradients, 96 * 4);

  Strategy alone = strategy;
  alone.expert = 1, alone.global_batch = 2;
  const Cluster cluster = at_one_millisecond(graph, {strategy, alone}, 2);
  const Prediction one = predict(small_experts(2), alone, cluster).value(),
                   two = predict(graph, strategy, cluster).value();
  const auto message = [&](Collective collective, double bytes) {
    return cluster.network.collective(collective, Bytes{bytes}, {2, 1, 1}).time.time;
  };
  const Seconds trips = 4 * message(Collective::all_to_all, 768), mean = message(Collective::all_reduce, 4),
                gradients = message(Collective::all_reduce, 96 * 4);
  EXPECT_EQ(two.bytes_sent, sent.total());
  EXPECT_NEAR(one.step_time.value(), 31e-3, 1e-9);
  EXPECT_NEAR(two.step_time.value(), 41e-3 + (trips + mean + gradients).value(), 1e-9);
}

// Nothing to share, nothing to wait for: whatever is asked of one device is a serial step.
TEST(CornerCases, OneDeviceIsOneDevice) {
  const Graph graph = test::mlp({16, 32, 8}, 4);
  Strategy serial;
  serial.global_batch = 4;
  serial.optimizer = OptimizerKind::adam;
  const Cluster cluster = test::cluster(1, 1);
  const Prediction expected = predict(graph, serial, cluster).value();
  std::vector<Strategy> others(6, serial);
  others[0].zero = 1, others[1].zero = 2, others[2].zero = 3, others[3].sequence = true;
  others[4].schedule = PipelineSchedule::zero_bubble, others[5].zero = 3, others[5].reduce_each = true;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto p = predict(graph, others[i], cluster);
    ASSERT_TRUE(p.has_value()) << i << ": " << p.error().message;
    EXPECT_EQ(p->step_time, expected.step_time) << i;
    EXPECT_EQ(p->memory.total, expected.memory.total) << i;
    EXPECT_EQ(p->bytes_sent, 0) << i;
  }
  SearchSpace space;
  space.fixed = serial;
  space.devices = {1};
  const SearchResult result = search(graph, space, cluster).value();
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(result.best.front().step_time, expected.step_time);
}

// Five layers on two, three and four stages: each operation is on one of them, and none is empty.
TEST(CornerCases, LayersNeedNotBeDividedEvenly) {
  const Graph graph = test::mlp({16, 16, 16, 16, 16, 16}, 2);
  for (const int stages : {2, 3, 4}) {
    for (const int chunks : {1, 2}) {
      Strategy strategy = pipelined(stages, 2 * stages);
      strategy.chunks = chunks;
      if (chunks > 1) strategy.schedule = PipelineSchedule::interleaved;
      const auto plan = make_plan(graph, strategy);
      ASSERT_TRUE(plan.has_value()) << stages << " x " << chunks;
      std::size_t steps = 0, updates = 0;
      for (const Stage& stage : plan->stages) {
        EXPECT_FALSE(stage.steps.empty());
        steps += stage.steps.size();
        updates += stage.updates.size();
      }
      EXPECT_EQ(steps, 10U);    // five linear layers, four ReLUs, the loss
      EXPECT_EQ(updates, 10U);  // weights and biases
      EXPECT_TRUE(predict(graph, strategy, test::cluster(1, stages)).has_value());
    }
  }
}

// Seven has no factor but itself, thirteen fills one node of eight and not the next: what can be divided so is priced, the rest
// is refused by name, and the search finds nothing slower than plain replicas.
TEST(CornerCases, APrimeNumberOfDevices) {
  const Graph graph = test::mlp({256, 1024, 1024, 64}, 2);
  for (const int devices : {7, 13}) {
    const Cluster cluster = test::cluster(devices > 8 ? 2 : 1, 8);
    SearchSpace space;
    space.fixed.global_batch = 4 * devices;
    space.devices = {devices};
    const SearchResult result = search(graph, space, cluster).value();
    Strategy plain = space.fixed;
    plain.data = devices;
    const auto replicas = predict(graph, plain, cluster);
    ASSERT_TRUE(replicas.has_value());
    ASSERT_FALSE(result.best.empty());
    EXPECT_LE(result.best.front().step_time, replicas->step_time);
    for (const Candidate& c : result.best) EXPECT_EQ(c.strategy.devices(), devices);
    Strategy divided = plain;
    divided.global_batch = 4 * devices + 1;
    EXPECT_EQ(predict(graph, divided, cluster).error().code, ErrorCode::infeasible);
  }
}

}  // namespace
}  // namespace sibyl

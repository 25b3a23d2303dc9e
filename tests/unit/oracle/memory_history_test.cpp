// Memory over a step's time: its highest place is footprint()'s peak, and what is alive there adds up to it.
#include "oracle/memory/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "oracle/predict.h"
#include "tests/support/cancelling.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using test::zoo;

void expect_same(const MemoryBreakdown& a, const MemoryBreakdown& b) {
  EXPECT_EQ(a.total, b.total);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_EQ(a.optimizer, b.optimizer);
  EXPECT_EQ(a.activations, b.activations);
  EXPECT_EQ(a.workspace, b.workspace);
  EXPECT_EQ(a.communication, b.communication);
  EXPECT_EQ(a.framework, b.framework);
}

void expect_adds_up(const MemoryHistory& history) {
  Bytes total;
  std::map<MemoryKind, Bytes> by_kind;
  for (const AliveMemory& alive : history.alive) {
    EXPECT_FALSE(alive.name.empty());
    EXPECT_GT(alive.bytes.value(), 0) << alive.name;
    EXPECT_GT(alive.count, 0) << alive.name;
    total += alive.bytes;
    by_kind[alive.kind] += alive.bytes;
  }
  const MemoryBreakdown& peak = history.footprint.peak;
  EXPECT_EQ(total, peak.total);
  EXPECT_EQ(by_kind[MemoryKind::weights], peak.weights);
  EXPECT_EQ(by_kind[MemoryKind::activations], peak.activations);
  EXPECT_EQ(by_kind[MemoryKind::gradients], peak.gradients);
  EXPECT_EQ(by_kind[MemoryKind::communication], peak.communication);
}

// The history of every device of the plan, held against footprint() and predict().
void check(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  const auto prediction = predict(graph, strategy, cluster);
  ASSERT_TRUE(prediction) << to_string(prediction.error());
  const auto fullest = step_memory(graph, strategy, cluster);
  ASSERT_TRUE(fullest);
  EXPECT_EQ(fullest->history.footprint.peak.total, prediction->memory.total);
  EXPECT_EQ(fullest->devices.size(), static_cast<std::size_t>(strategy.pipeline));
  for (std::size_t c = 0; c < fullest->devices.size(); ++c) {
    const auto memory = step_memory(graph, strategy, cluster, c);
    ASSERT_TRUE(memory);
    const MemoryHistory& history = memory->history;
    EXPECT_EQ(memory->coordinate, c);
    expect_same(history.footprint.peak, memory->devices[c].peak);
    ASSERT_LT(history.peak, history.moments.size());
    const MemoryBreakdown& highest = history.footprint.peak;
    expect_same(history.moments[history.peak].most, highest);
    Bytes needed;
    for (const MemoryMoment& moment : history.moments) {
      EXPECT_LE(moment.most.total, highest.total);
      EXPECT_GE(moment.most.needed(), moment.most.total);
      needed = std::max(needed, moment.most.needed());
    }
    EXPECT_EQ(needed, highest.needed());
    EXPECT_TRUE(std::ranges::is_sorted(history.moments, {}, &MemoryMoment::start));
    EXPECT_LE(history.moments.back().start, history.end);
    EXPECT_LE(history.end, prediction->step_time);
    expect_adds_up(history);
  }
}

// On a device with a caching allocator, what it holds beside what is alive is told, too, until needed() is reached;
// what is given back it keeps.
TEST(MemoryHistory, OfACachingAllocator) {
  Device device = test::cpu_device();
  device.backend = Backend::cuda;
  device.framework_base = Bytes{512e6};
  const Cluster cluster = test::cluster(1, 2, BytesPerSecond{1e9}, {}, device);
  const Graph graph = zoo("resnet18", 2);
  Strategy strategy;
  strategy.global_batch = 16;
  strategy.accumulation = 4;
  for (const int stages : {1, 2}) {
    strategy.pipeline = stages;
    check(graph, strategy, cluster);
    const auto memory = step_memory(graph, strategy, cluster);
    ASSERT_TRUE(memory);
    const MemoryBreakdown& first = memory->history.moments.front().most;
    const MemoryBreakdown& last = memory->history.moments.back().most;
    EXPECT_GE(first.reserved, first.total);
    EXPECT_GT(last.cached(), Bytes{1e6});
    EXPECT_EQ(last.needed(), memory->history.footprint.peak.needed());
  }
}

TEST(MemoryHistory, EndsWhenItIsCancelled) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  for (const int stages : {1, 2}) {
    Strategy strategy;
    strategy.pipeline = stages;
    strategy.global_batch = 4;
    strategy.accumulation = 2;
    test::expect_ends_when_cancelled(
        [&](const Cancelled& cancelled) { return step_memory(graph, strategy, test::cluster(2, 1), {}, cancelled); });
  }
}

// footprint_test's multi-layer perceptron, whose peak is where fc1 runs backward: weights 128 + 64 + 128 + 64,
// gradients as much, the batch 64 + 64, and beside them the gradient of fc1.y, 64.
TEST(MemoryHistory, OfAnMlpByHand) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  const auto memory = step_memory(graph, strategy, test::cluster(1, 1));
  ASSERT_TRUE(memory);
  const MemoryHistory& history = memory->history;
  EXPECT_EQ(history.where(history.peak), "fc1 backward of micro-batch 0");
  std::map<std::string, double> alive;
  for (const AliveMemory& a : history.alive)
    if (a.kind != MemoryKind::workspace && a.kind != MemoryKind::framework) alive[a.name] = a.bytes.value();
  const std::map<std::string, double> expected = {{"fc1.weight", 128},
                                                  {"fc1.bias", 64},
                                                  {"fc2.weight", 128},
                                                  {"fc2.bias", 64},
                                                  {"x", 64},
                                                  {"targets", 64},
                                                  {"gradient of fc1.weight", 128},
                                                  {"gradient of fc1.bias", 64},
                                                  {"gradient of fc2.weight", 128},
                                                  {"gradient of fc2.bias", 64},
                                                  {"gradient of fc1.y", 64}};
  EXPECT_EQ(alive, expected);
  // Before the step weights and the batch: 384 + 128. Forward of fc1 adds its result, relu its own.
  EXPECT_EQ(history.moments.front().most.total.value(), 512);
  EXPECT_EQ(history.names[history.moments[1].name], "fc1 forward");
  EXPECT_EQ(history.moments[1].most.total.value(), 512 + 64);
  EXPECT_EQ(history.moments[2].most.total.value(), 512 + 64 + 64);
}

TEST(MemoryHistory, OfAConvolutionalNetwork) {
  Strategy strategy;
  strategy.global_batch = 8;
  strategy.data = 2;
  strategy.accumulation = 2;
  strategy.optimizer = OptimizerKind::adam;
  check(zoo("resnet18", 2), strategy, test::cluster(2, 1));
}

TEST(MemoryHistory, OfATransformer) {
  Strategy strategy;
  strategy.global_batch = 4;
  strategy.tensor = 2;
  strategy.recompute = Recompute::full;
  strategy.optimizer = OptimizerKind::adamw;
  check(zoo("gpt2-mini", 4, {{"seq", 64}}), strategy, test::cluster(1, 2));
}

TEST(MemoryHistory, OfPipelines) {
  // Without weights that several stages share, which interleaved stages cannot.
  const Graph graph = zoo("resnet18", 2);
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward,
                                          PipelineSchedule::interleaved, PipelineSchedule::zero_bubble}) {
    Strategy strategy;
    strategy.pipeline = 2;
    strategy.schedule = schedule;
    strategy.chunks = schedule == PipelineSchedule::interleaved ? 2 : 1;
    strategy.accumulation = 8;
    strategy.global_batch = 16;
    check(graph, strategy, test::cluster(1, 2));
  }
}

TEST(MemoryHistory, OfShardedState) {
  const Graph graph = zoo("gpt2-mini", 2, {{"seq", 64}});
  for (const int zero : {1, 2, 3}) {
    Strategy strategy;
    strategy.data = 2;
    strategy.zero = zero;
    strategy.global_batch = 8;
    strategy.accumulation = 2;
    strategy.optimizer = zero == 3 ? OptimizerKind::lamb : OptimizerKind::adamw;
    check(graph, strategy, test::cluster(1, 2));
  }
}

// Places follow each other as operations run: backward of an operation after its forward, and the update last.
TEST(MemoryHistory, FollowsTheStep) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  const auto memory = step_memory(graph, strategy, test::cluster(1, 1));
  std::vector<std::string> told;
  for (const MemoryMoment& moment : memory->history.moments) told.push_back(memory->history.names[moment.name]);
  EXPECT_THAT(told,
              testing::ElementsAre("before the step", "fc1 forward", "fc1.relu forward", "fc2 forward", "loss forward",
                                   "loss backward", "fc2 backward", "fc1.relu backward", "fc1 backward", "optimizer"));
  EXPECT_GT(memory->history.moments.back().start, memory->history.moments[1].start);
}

// LAMB's directions are a stage's own: two stages on a device update one after the other, and hold no more than one's.
TEST(MemoryHistory, StagesOfADeviceHoldTheirDirectionsInTurn) {
  constexpr std::int64_t width = 64;
  const Graph graph = test::mlp({width, width, width, width, width}, 2);
  Strategy strategy;
  strategy.data = 2, strategy.pipeline = 2;
  strategy.chunks = 2, strategy.schedule = PipelineSchedule::interleaved;
  strategy.zero = 1, strategy.optimizer = OptimizerKind::lamb;
  strategy.global_batch = 16, strategy.accumulation = 4;
  const auto memory = step_memory(graph, strategy, test::cluster(1, 4), 0);
  ASSERT_TRUE(memory) << to_string(memory.error());
  const MemoryHistory& history = memory->history;
  Bytes most;
  for (const MemoryMoment& moment : history.moments)
    if (history.names[moment.name] == "optimizer") most = std::max(most, moment.most.optimizer);
  // Half of a layer's weights and biases, in f32.
  constexpr double directions = 4.0 * (width * width + width) / 2;
  EXPECT_EQ(most - history.moments.front().most.optimizer, Bytes{directions});
}

}  // namespace
}  // namespace sibyl

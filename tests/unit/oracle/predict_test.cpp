// Whole predictions: sums by hand, limits, and what must hold for every input.
#include "oracle/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "oracle/cost/price.h"
#include "oracle/expected_maximum.h"
#include "oracle/plan/plan.h"
#include "oracle/simulate/step.h"
#include "tests/support/any_plan.h"
#include "tests/support/cancelling.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/strategies.h"

namespace sibyl {
namespace {

using test::data_parallel;
// Every kernel of the plan measured at 1 ms: the step is their number in milliseconds.
std::vector<KernelSample> all_at_one_millisecond(const Graph& graph, const Strategy& strategy) {
  std::vector<KernelSample> samples;
  const auto plan = make_plan(graph, strategy);
  for (KernelKey& key : kernels_of(*plan, Backend::cpu))
    samples.push_back({std::move(key), Seconds{1e-3}, 0.0, 100, {}, {}, {}});
  return samples;
}

// Forward fc1 relu fc2 loss = 4; backward the same 4; updates 4 parameters: 12 ms.
TEST(Predict, SerialStepIsTheSumOfItsKernels) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Strategy strategy = data_parallel(1, 2);
  const auto p =
      predict(graph, strategy, test::cluster(1, 1, BytesPerSecond{1e9}, all_at_one_millisecond(graph, strategy)));
  ASSERT_TRUE(p.has_value());
  EXPECT_NEAR(p->step_time.value(), 12e-3, 1e-9);
  EXPECT_NEAR(p->breakdown.forward.value(), 4e-3, 1e-9);
  EXPECT_NEAR(p->breakdown.backward.value(), 4e-3, 1e-9);
  EXPECT_NEAR(p->breakdown.optimizer.value(), 4e-3, 1e-9);
  EXPECT_NEAR(p->throughput, 2 / 12e-3, 1e-3);
  EXPECT_DOUBLE_EQ(p->provenance.measured, 1.0);
  EXPECT_EQ(p->bytes_sent, 0);
}

// A host that takes a second for each call, kernels and messages of microseconds: forward takes as many seconds as it
// has kernels and exchanges between ranks that share tensors.
TEST(Predict, ExchangesAreLaunchedLikeKernels) {
  Device device = test::cpu_device();
  device.backend = Backend::cuda;
  device.dispatch = Seconds{1};
  const Graph graph = test::mlp({8, 16, 8, 4}, 2);
  Strategy strategy;
  strategy.tensor = 2;
  strategy.global_batch = 2;
  const Plan plan = make_plan(graph, strategy).value();
  const Stage& stage = plan.stages.front();
  const PricedStage priced = price(plan, stage, test::cluster(1, 2, BytesPerSecond{1e9}, {}, device));
  int kernels = 0, exchanges = 0;
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    kernels += priced.kernels.steps[i].forward ? 1 : 0;
    exchanges += priced.exchanges[i].forward ? 1 : 0;
  }
  ASSERT_GT(exchanges, 0);
  const TurnTimes forward = simulate_turn(stage, priced, {}, {.kind = Turn::Kind::forward}, {});
  EXPECT_NEAR(forward.total.value(), kernels + exchanges, 0.01);
}

// Two replicas: 4 copies into buckets within backward and 4 back, and 268 B of gradients each way through the ring.
TEST(Predict, ReplicasCopyAndSendTheirGradients) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Strategy strategy = data_parallel(2, 4);
  const auto p =
      predict(graph, strategy, test::cluster(2, 1, BytesPerSecond{1e9}, all_at_one_millisecond(graph, strategy)));
  ASSERT_TRUE(p.has_value());
  EXPECT_NEAR(p->breakdown.backward.value(), 8e-3, 1e-9);
  EXPECT_NEAR(p->breakdown.optimizer.value(), 8e-3, 1e-9);
  EXPECT_GT(p->breakdown.communication_total.value(), 0);
  EXPECT_EQ(p->bytes_sent, 268);
}

TEST(Predict, TooManyDevicesIsInfeasible) {
  const auto p = predict(test::mlp({4, 3}, 2), data_parallel(4, 4), test::cluster(2, 1));
  ASSERT_FALSE(p.has_value());
  EXPECT_EQ(p.error().code, ErrorCode::infeasible);
  EXPECT_THAT(p.error().hint, testing::HasSubstr("data=2"));
}

TEST(Predict, WhatDoesNotFitIsPricedAndSaid) {
  Cluster cluster = test::cluster(1, 1);
  Device small = test::cpu_device();
  small.memory = Bytes{100};
  cluster.kernels = KernelTable(small, {});
  const auto p = predict(test::mlp({4, 8, 3}, 2), data_parallel(1, 2), cluster);
  ASSERT_TRUE(p.has_value());
  EXPECT_FALSE(p->fits);
  EXPECT_GT(p->memory.total, p->memory_capacity);
  EXPECT_DOUBLE_EQ(p->provenance.estimated, 1.0);
}

TEST(Predict, SameQuestionSameAnswer) {
  const Graph graph = test::mlp({16, 32, 4}, 4);
  const auto a = predict(graph, data_parallel(2, 8), test::cluster(2, 1));
  const auto b = predict(graph, data_parallel(2, 8), test::cluster(2, 1));
  EXPECT_EQ(a->step_time, b->step_time);
  EXPECT_EQ(a->interval_low, b->interval_low);
  EXPECT_EQ(a->memory.total, b->memory.total);
}

Graph any_mlp() {
  auto widths = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 600));
  if (widths.size() < 2) widths = {8, 4};
  if (widths.size() > 8) widths.resize(8);
  return test::mlp(widths, 2);
}

RC_GTEST_PROP(Predict, MoreBandwidthIsNeverSlower, ()) {
  const Graph graph = any_mlp();
  const int replicas = *rc::gen::inRange(2, 9);
  const double rate = 1e6 * *rc::gen::inRange(1, 10000);
  const auto slow =
      predict(graph, data_parallel(replicas, replicas * 4), test::cluster(replicas, 1, BytesPerSecond{rate}));
  const auto fast =
      predict(graph, data_parallel(replicas, replicas * 4), test::cluster(replicas, 1, BytesPerSecond{2 * rate}));
  RC_ASSERT(fast->step_time <= slow->step_time * (1 + 1e-12));
}

// Of a device whose context was measured, with kernels that were timed here, nothing is taken for granted; nor on a
// processor, where memory is the tensors'.
TEST(Predict, SaysWhatOfTheDeviceWasNotMeasured) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto assumed = [&](const Device& device, std::vector<KernelSample> samples) {
    return predict(graph, data_parallel(1, 2), test::cluster(1, 1, BytesPerSecond{1e9}, std::move(samples), device))
        ->assumed;
  };
  std::vector<KernelSample> here = all_at_one_millisecond(graph, data_parallel(1, 2)), published = here;
  for (KernelSample& sample : published) sample.source = "a paper";
  Device device = test::cpu_device();
  EXPECT_TRUE(assumed(device, published).empty());
  device.backend = Backend::cuda;
  device.framework_base = Bytes{512.0 * 1024 * 1024};
  EXPECT_TRUE(assumed(device, here).empty());
  EXPECT_THAT(assumed(device, published), testing::ElementsAre(testing::HasSubstr("workspace")));
  EXPECT_THAT(assumed(device, {}), testing::ElementsAre(testing::HasSubstr("workspace")));
  published.front().workspace = Bytes{1};
  EXPECT_TRUE(assumed(device, published).empty());
  device.framework_assumed = true;
  EXPECT_THAT(assumed(device, here), testing::ElementsAre(testing::HasSubstr("the framework holds 512 MiB")));
}

TEST(Predict, SaysWhatNoLossReaches) {
  Graph graph = test::mlp({4, 8, 3}, 2);
  graph.untrained = {{"pooled", 1, 64}};
  EXPECT_THAT(
      predict(graph, data_parallel(1, 2), test::cluster(1, 1))->assumed,
      testing::ElementsAre("1 parameter of 64 elements only reaches output pooled, which no loss is attached to: "
                           "neither trained nor held in memory"));
}

std::vector<double> times_of(const Prediction& p) {
  const TimeBreakdown& t = p.breakdown;
  std::vector<double> all = {
      p.throughput,       p.provenance.measured, p.provenance.interpolated,        p.provenance.estimated,
      p.bottleneck.share, p.bottleneck.relief,   static_cast<double>(p.bytes_sent)};
  for (const Seconds s :
       {p.step_time, p.interval_low, p.interval_high, t.forward, t.backward, t.optimizer, t.communication_exposed,
        t.communication_total, t.bubble, t.host, t.io, t.io_total, t.offload_exposed, t.offload_total})
    all.push_back(s.value());
  for (const OperationCost& o : p.operations)
    for (const Estimate& e : {o.forward, o.backward}) all.insert(all.end(), {e.time.value(), e.relative_error});
  return all;
}

std::vector<double> bytes_of(const Prediction& p) {
  const MemoryBreakdown& m = p.memory;
  std::vector<double> all;
  for (const Bytes b : {m.total, m.weights, m.gradients, m.optimizer, m.activations, m.workspace, m.communication,
                        m.framework, m.reserved, p.memory_capacity, p.host_memory, p.storage})
    all.push_back(b.value());
  return all;
}

// One replica has nobody to exchange anything with: however gradients would be exchanged and state be shared, on
// whatever network, all of its prediction is that of one device that has no network at all.
RC_GTEST_PROP(Predict, OneReplicaIsSerial, ()) {
  const Graph graph = test::any_model();
  Cluster many = test::any_cluster();
  many.storage_read = BytesPerSecond{1e6 * test::any(1, 1000)};
  Strategy serial;
  serial.accumulation = test::any(1, 4);
  serial.global_batch = serial.accumulation * test::any(1, 8);
  serial.precision = test::one_of(Precision::fp32, Precision::fp16, Precision::bf16);
  serial.optimizer = test::one_of(OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::adam);
  serial.recompute = test::one_of(Recompute::none, Recompute::selective, Recompute::full);
  serial.data_source = test::one_of(DataSource::memory, DataSource::storage);
  Strategy replica = serial;
  replica.data = 1;
  replica.zero = test::any(0, 3);
  replica.exchange = test::one_of(GradientExchange::overlapped, GradientExchange::at_end);
  replica.bucket = Bytes{1024.0 * test::any(1, 4000)};
  replica.first_bucket = replica.bucket / 4;
  replica.order = {MeshAxis::pipeline, MeshAxis::data};
  replica.compression = test::one_of(Compression{}, Compression{Compression::Kind::bf16}, Compression{Compression::Kind::one_bit},
                                     Compression{Compression::Kind::top_k, 0.1});
  replica.batch_norm = test::one_of(BatchNorm::replica, BatchNorm::synchronised);
  const auto expected = predict(graph, serial, *resized(many, 1, 1)), p = predict(graph, replica, many);
  RC_ASSERT(expected.has_value() && p.has_value());
  RC_ASSERT(p->breakdown.communication_total.value() == 0.0);
  RC_ASSERT(p->memory.communication.value() == 0.0);
  RC_ASSERT(times_of(*p) == times_of(*expected));
  RC_ASSERT(bytes_of(*p) == bytes_of(*expected));
  RC_ASSERT(p->fits == expected->fits);
  RC_ASSERT(p->bottleneck.name == expected->bottleneck.name);
}

// fc1, relu, fc2, its bias, relu, fc3, loss: 7 kernels forward, 7 backward, 6 updates; between them the sum of fc2's 2
// x 6 results, for which everything waits. Of 12 x 4 bytes a ring of two sends all.
TEST(Predict, ComputationWaitsForExchanges) {
  const Graph graph = test::mlp({4, 8, 6, 3}, 2);
  Strategy strategy = data_parallel(1, 2);
  strategy.tensor = 2;
  const auto p =
      predict(graph, strategy, test::cluster(2, 1, BytesPerSecond{1e9}, all_at_one_millisecond(graph, strategy)));
  ASSERT_TRUE(p.has_value());
  EXPECT_GT(p->breakdown.communication_total.value(), 0);
  EXPECT_EQ(p->breakdown.communication_exposed, p->breakdown.communication_total);
  EXPECT_NEAR(p->breakdown.forward.value(), 7e-3, 1e-9);
  EXPECT_NEAR(p->breakdown.backward.value(), 7e-3, 1e-9);
  EXPECT_NEAR(p->step_time.value(), 20e-3 + p->breakdown.communication_total.value(), 1e-9);
  EXPECT_EQ(p->bytes_sent, 48);
}

// As the trainer sends them: 4096 x 6 x 4 bytes between operations, more than 16 KiB, round a ring of four (3/2 of them),
// and the gradients, a quarter of fc1 (2 x 4 + 2), of fc2's rows and its bias (6 x 2 + 6) and all of fc3 (3 x 6 + 3), by
// recursive doubling among four (twice).
TEST(Predict, EachMessageIsCountedByItsOwnSize) {
  const Graph graph = test::mlp({4, 8, 6, 3}, 2);
  Strategy strategy = data_parallel(4, 4 * 4096);
  strategy.tensor = 4;
  const auto p = predict(graph, strategy, test::cluster(16, 1));
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->bytes_by_kind.exchanges, 4096 * 6 * 4 * 3 / 2);
  EXPECT_EQ(p->bytes_by_kind.gradients, 2 * (10 + 18 + 21) * 4);
}

// Half of fc1 (4 x 4 + 4), half of fc2's rows and its bias (6 x 4 + 6), all of fc3 (3 x 6 + 3): 64, 16, 96, 24, 72 and
// 12 bytes, each rounded up to 64.
TEST(Predict, RanksHoldTheirPartOfTheWeights) {
  const Graph graph = test::mlp({4, 8, 6, 3}, 2);
  Strategy strategy = data_parallel(1, 2);
  strategy.tensor = 2;
  const auto p = predict(graph, strategy, test::cluster(2, 1));
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->memory.weights.value(), 64 + 64 + 128 + 64 + 128 + 64);
}

// Each of these inputs changes the answer it should.
TEST(Predict, EveryInputMatters) {
  const Graph graph = test::mlp({256, 512, 64}, 2);
  Strategy base = data_parallel(4, 32);
  base.first_bucket = Bytes{100e3};  // so that there are two
  const auto answer = [&](const Strategy& s, const Cluster& c) { return predict(graph, s, c).value(); };
  const Cluster cluster = test::cluster(4, 1);
  const Prediction reference = answer(base, cluster);
  auto with = [&](auto change) {
    Strategy s = base;
    change(s);
    return answer(s, cluster);
  };
  EXPECT_NE(with([](Strategy& s) { s.global_batch = 64; }).step_time, reference.step_time);
  EXPECT_NE(with([](Strategy& s) { s.data = 2; }).step_time, reference.step_time);
  EXPECT_NE(with([](Strategy& s) { s.optimizer = OptimizerKind::adam; }).step_time, reference.step_time);
  EXPECT_NE(with([](Strategy& s) { s.optimizer = OptimizerKind::adam; }).memory.total, reference.memory.total);
  EXPECT_NE(with([](Strategy& s) { s.precision = Precision::bf16; }).step_time, reference.step_time);
  EXPECT_NE(with([](Strategy& s) { s.exchange = GradientExchange::at_end; }).step_time, reference.step_time);
  EXPECT_NE(with([](Strategy& s) { s.first_bucket = Bytes{1e9}; }).buckets, reference.buckets);
  EXPECT_NE(with([](Strategy& s) { s.accumulation = 2; }).step_time, reference.step_time);
  EXPECT_NE(answer(base, test::cluster(1, 4)).step_time, reference.step_time);
  EXPECT_NE(answer(base, test::cluster(4, 1, BytesPerSecond{5e8})).step_time, reference.step_time);
}

// What others use is no assumption of the model's but the cluster's; without them the job is alone.
TEST(Predict, SaysWhoElseIsOnTheNetwork) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto assumed = [&](double of_nics, double of_links, int replicas) {
    Cluster cluster = test::cluster(2, 1);
    TopologySpec links = cluster.network.topology().spec();
    links.nic_background = of_nics;
    links.device_link.background = of_links;
    cluster.network = Network(*Topology::make(links), {}, {});
    return predict(graph, data_parallel(replicas, 4), cluster)->assumed;
  };
  using testing::Contains;
  EXPECT_THAT(assumed(0, 0, 2), Contains("all devices are alike and nothing else uses the machine or its network"));
  EXPECT_THAT(
      assumed(0.3, 0, 2),
      Contains("all devices are alike; others use 30 % of each NIC, all the time, and nothing else of the machine"));
  EXPECT_THAT(
      assumed(0.335, 0.07, 2),
      Contains("all devices are alike; others use 33.5 % of each NIC and 7 % of the links inside each node, all "
               "the time, and nothing else of the machine"));
  Cluster uneven = test::cluster(2, 1);
  uneven.composition.spread = 0.015;
  EXPECT_THAT(
      predict(graph, data_parallel(2, 4), uneven)->assumed,
      Contains("devices differ in speed by 1.5 % (one standard deviation) and nothing else uses the machine or its "
               "network"));
  EXPECT_THAT(assumed(0.3, 0, 1), testing::Not(Contains(testing::HasSubstr("others use"))));
}

TEST(Predict, EndsWhenItIsCancelled) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Cluster cluster = test::cluster(2, 1);
  for (const int stages : {1, 2}) {
    Strategy strategy = data_parallel(1, 4);
    strategy.pipeline = stages;
    strategy.accumulation = 2;
    test::expect_ends_when_cancelled(
        [&](const Cancelled& cancelled) { return predict(graph, strategy, cluster, cancelled); });
  }
}

// Within a simulation, too: of two stages with 62 micro-batches more, that is 62 turns forward and 62 backward of each,
// in each of the step's simulations; of one stage, those of its program.
TEST(Predict, AsksInEachTurnOfASimulation) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Cluster cluster = test::cluster(2, 1);
  for (const int stages : {1, 2}) {
    const auto asked = [&](int micro_batches) {
      Strategy strategy = data_parallel(1, 128);
      strategy.pipeline = stages;
      strategy.accumulation = micro_batches;
      return test::times_asked(
          [&](const Cancelled& cancelled) { return predict(graph, strategy, cluster, cancelled); });
    };
    EXPECT_GE(asked(64), asked(2) + static_cast<std::size_t>(stages) * 62 * 2);
  }
}

// Between two points and within one.
TEST(Scale, EndsWhenItIsCancelled) {
  const Graph graph = test::mlp({64, 64, 8}, 2);
  const Cluster cluster = test::cluster(4, 1);
  const auto run = [&](const std::function<void(const ScalePoint&)>& each, const Cancelled& cancelled) {
    return scale(graph, data_parallel(1, 16), cluster, {1, 2, 4}, Scaling::weak, each, cancelled);
  };
  bool told = false;
  const auto between = run([&](const ScalePoint&) { told = true; }, [&] { return told; });
  ASSERT_EQ(between.size(), 1U);
  EXPECT_TRUE(between[0].prediction.has_value());
  std::size_t asked = 0;
  const auto within = run({}, [&] { return ++asked > 2; });
  ASSERT_EQ(within.size(), 1U);
  ASSERT_FALSE(within[0].prediction.has_value());
  EXPECT_EQ(within[0].prediction.error().code, ErrorCode::interrupted);
}

TEST(Scale, WeakKeepsTheBatchOfADeviceAndStrongThatOfAll) {
  const Graph graph = test::mlp({64, 64, 8}, 2);
  const Cluster cluster = test::cluster(8, 1);
  const auto weak = scale(graph, data_parallel(1, 16), cluster, {1, 2, 4, 16}, Scaling::weak);
  ASSERT_EQ(weak.size(), 4U);
  EXPECT_EQ(weak[3].prediction->global_batch, 256);
  EXPECT_DOUBLE_EQ(weak[0].efficiency, 1.0);
  EXPECT_LT(weak[3].efficiency, 1.0);
  const auto strong = scale(graph, data_parallel(1, 16), cluster, {1, 16, 32}, Scaling::strong);
  EXPECT_EQ(strong[1].prediction->micro_batch, 1);
  EXPECT_FALSE(strong[2].prediction.has_value()) << "16 samples over 32 devices";
}

// E max of 2 normals is 1/sqrt(pi) = 0.564; Blom's approximation gives 0.589.
TEST(Interval, ExpectedMaximum) {
  EXPECT_DOUBLE_EQ(expected_maximum(1), 0.0);
  EXPECT_NEAR(expected_maximum(2), 0.564, 0.03);
  EXPECT_NEAR(expected_maximum(100), 2.508, 0.02);
}

}  // namespace
}  // namespace sibyl

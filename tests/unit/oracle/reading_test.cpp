// Samples that come from storage.
#include "oracle/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

Strategy from_storage(int replicas, std::int64_t batch) {
  Strategy strategy;
  strategy.data = replicas;
  strategy.global_batch = batch;
  strategy.data_source = DataSource::storage;
  return strategy;
}

Cluster with_storage(int nodes, int devices_per_node, double bytes_per_second) {
  Cluster cluster = test::cluster(nodes, devices_per_node);
  cluster.storage_read = BytesPerSecond{bytes_per_second};
  return cluster;
}

Seconds time_to_read(const Strategy& strategy, const Cluster& cluster, const Graph& graph) {
  return reading_time(make_plan(graph, strategy).value(), cluster).value();
}

// A sample is 4 f32 features and an i64 target: 24 B. Each rank takes 2 of them: 48 B, at 1000 B/s.
TEST(Reading, IsTheBytesOfTheNodesInputsOverItsRate) {
  const Graph graph = test::mlp({4, 3}, 2);
  EXPECT_NEAR(time_to_read(from_storage(1, 2), with_storage(1, 1, 1000), graph).value(), 0.048, 1e-12);
  // Two nodes of two ranks: what two ranks read goes through one node's storage.
  EXPECT_NEAR(time_to_read(from_storage(4, 8), with_storage(2, 2, 1000), graph).value(), 0.096, 1e-12);
  // Three micro-batches of 2.
  Strategy accumulated = from_storage(1, 6);
  accumulated.accumulation = 3;
  EXPECT_NEAR(time_to_read(accumulated, with_storage(1, 1, 1000), graph).value(), 0.144, 1e-12);
}

TEST(Reading, CostsNothingFromMemory) {
  Strategy strategy = from_storage(1, 2);
  strategy.data_source = DataSource::memory;
  const auto p = predict(test::mlp({4, 3}, 2), strategy, with_storage(1, 1, 1));
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->breakdown.io, Seconds{});
  EXPECT_EQ(p->breakdown.io_total, Seconds{});
}

TEST(Reading, OfUnknownStorageSaysHowToKnowIt) {
  const auto p = predict(test::mlp({4, 3}, 2), from_storage(1, 2), test::cluster(1, 1));
  ASSERT_FALSE(p.has_value());
  EXPECT_EQ(p.error().code, ErrorCode::bad_input);
  EXPECT_THAT(p.error().hint, testing::HasSubstr("calibrate io"));
}

TEST(Reading, HidesBehindTheStepBefore) {
  const Graph graph = test::mlp({4, 3}, 2);
  Strategy in_memory = from_storage(1, 2);
  in_memory.data_source = DataSource::memory;
  const auto alone = predict(graph, in_memory, with_storage(1, 1, 1e15));
  const auto p = predict(graph, from_storage(1, 2), with_storage(1, 1, 1e15));
  EXPECT_EQ(p->step_time, alone->step_time);
  EXPECT_EQ(p->breakdown.io, Seconds{});
  EXPECT_GT(p->breakdown.io_total, Seconds{});
  EXPECT_EQ(p->bottleneck.name, alone->bottleneck.name);
}

// 48 B at 48 B/s: a second, and this model's step takes microseconds.
TEST(Reading, SetsTheStepWhereItTakesLonger) {
  const Graph graph = test::mlp({4, 3}, 2);
  Strategy in_memory = from_storage(1, 2);
  in_memory.data_source = DataSource::memory;
  const Cluster cluster = with_storage(1, 1, 48);
  const Seconds alone = predict(graph, in_memory, cluster)->step_time;
  const auto p = predict(graph, from_storage(1, 2), cluster);
  EXPECT_NEAR(p->step_time.value(), 1.0, 1e-12);
  EXPECT_NEAR(p->breakdown.io.value(), 1.0 - alone.value(), 1e-12);
  EXPECT_NEAR(p->throughput, 2.0, 1e-9);
  EXPECT_EQ(p->bottleneck.name, "storage: reading samples");
  EXPECT_NEAR(p->bottleneck.relief, 0.5, 1e-12);
  EXPECT_LT(p->interval_low, p->step_time);
}

}  // namespace
}  // namespace sibyl

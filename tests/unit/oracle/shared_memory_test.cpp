// Kernels beside those of other stages on the same memory.
#include "oracle/cost/shared_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "calibration/cluster_change.h"
#include "oracle/closed/closed_form.h"
#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

// fc1 relu | fc2 loss: each stage runs two kernels forward, two backward, and updates two parameters. No kernel is of
// both.
const Graph& two_layers() {
  static const Graph graph = test::mlp({8, 16, 12}, 4);
  return graph;
}

Strategy in_stages(int data = 1) {
  Strategy strategy;
  strategy.data = data;
  strategy.pipeline = 2;
  strategy.stage_starts = {"fc2"};
  strategy.global_batch = 4;
  return strategy;
}

using Shares = std::array<double, 2>;  // by stage

// Every kernel takes 1 ms with all ranks at it, and its stage's share of that alone.
Cluster slowed_cluster(const Strategy& strategy, int nodes, int per_node, Shares alone) {
  std::vector<KernelSample> samples;
  const Plan plan = make_plan(two_layers(), strategy).value();
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (KernelKey& key : kernels_of(plan.stages[s], Backend::cpu).keys) {
      KernelSample& sample = samples.emplace_back();
      sample.key = std::move(key);
      sample.time = Seconds{1e-3};
      sample.runs = 100;
      sample.alone = Seconds{alone[s] * 1e-3};
    }
  return test::cluster(nodes, per_node, BytesPerSecond{1e9}, std::move(samples), test::cpu_device());
}

Cluster one_node(const Shares& alone) { return slowed_cluster(in_stages(), 1, 2, alone); }

// Of the first kernel of each stage, in milliseconds.
std::vector<double> times(const Strategy& strategy, const Cluster& cluster) {
  std::vector<double> result;
  for (const PricedStage& stage : price(make_plan(two_layers(), strategy).value(), cluster))
    result.push_back(stage.prices.front().estimate.time.time.value() * 1e3);
  return result;
}

// Half alone is an excess of 1, a quarter one of 3. Each rank runs 6 kernels: alone 3 ms, pressing with 1, and 1.5 ms,
// pressing with the root of 3; in a step of 4 ms of passes, as much for filling and draining, and 2 ms of updates. So a
// kernel of the first meets 1.5 sqrt(3) / 10 and one of the second 3 / 10.
TEST(SharedMemory, IsPressedOnByTheOtherStageAsLongAsItRuns) {
  const std::vector<double> beside = times(in_stages(), one_node({0.5, 0.25}));
  ASSERT_EQ(beside.size(), 2U);
  EXPECT_NEAR(beside[0], 0.5 * (1 + 1.5 * std::sqrt(3.0) / 10), 1e-9);
  EXPECT_NEAR(beside[1], 0.25 * (1 + std::sqrt(3.0) * 3 / 10), 1e-9);
}

TEST(SharedMemory, IsFreeBesideAStageThatNeedsNone) {
  const std::vector<double> beside = times(in_stages(), one_node({0.5, 1}));
  EXPECT_NEAR(beside[0], 0.5, 1e-9);
  EXPECT_NEAR(beside[1], 1, 1e-9);
}

TEST(SharedMemory, IsNeverSlowerThanWithAllAtTheKernel) {
  // A twentieth alone beside a kernel that presses with 1.
  EXPECT_LE(times(in_stages(), one_node({0.9, 0.05}))[0], 1);
  Strategy strategy;
  strategy.pipeline = 2, strategy.chunks = 2, strategy.accumulation = 4, strategy.global_batch = 16;
  strategy.schedule = PipelineSchedule::interleaved;
  const Graph graph = test::mlp({8, 16, 8, 24, 8, 12}, 4);
  const Plan plan = make_plan(graph, strategy).value();
  std::vector<KernelSample> samples;
  for (const KernelKey& key : kernels_of(plan, Backend::cpu)) {
    samples.push_back({key, Seconds{1e-3}, 0.0, 100, {}, {}, {}});
    samples.back().alone = Seconds{0.5e-3};
  }
  const Cluster cluster = test::cluster(1, 2, BytesPerSecond{1e9}, std::move(samples), test::cpu_device());
  for (const PricedStage& stage : price(plan, cluster))
    for (const PricedKernel& kernel : stage.prices) {
      EXPECT_GT(kernel.estimate.time.time.value(), 0.5e-3);
      EXPECT_LT(kernel.estimate.time.time.value(), 1e-3);
    }
}

// A replica adds two copies into a bucket and two back to a stage: 10 kernels, so a step of 14 ms and 5 of pressing.
// Ranks 0 and 1 are stage 0, 2 and 3 stage 1.
TEST(SharedMemory, ReplicasPressAsCalibrated) {
  const Strategy strategy = in_stages(2);
  const Shares half{0.5, 0.5};
  // One of three others runs the same.
  const double mixed = 0.5 * (1 + 1.0 / 3 + 2.0 / 3 * 5 / 14);
  EXPECT_NEAR(times(strategy, slowed_cluster(strategy, 1, 4, half))[0], mixed, 1e-9);
  EXPECT_NEAR(times(strategy, slowed_cluster(strategy, 2, 2, half))[0], 1, 1e-9) << "a node of one stage";
  Cluster apart = slowed_cluster(strategy, 4, 1, half);
  EXPECT_NEAR(times(strategy, apart)[0], 1, 1e-9) << "nobody on its node";
  apart.one_machine = true;
  EXPECT_NEAR(times(strategy, apart)[0], mixed, 1e-9);
}

TEST(SharedMemory, ConcernsPipelinesAlone) {
  Strategy replicas;
  replicas.data = 2;
  replicas.global_batch = 4;
  EXPECT_DOUBLE_EQ(times(replicas, slowed_cluster(replicas, 1, 2, {0.5, 0.5}))[0], 1);
  EXPECT_DOUBLE_EQ(times(in_stages(), one_node({0, 0}))[0], 1) << "not known";
  EXPECT_DOUBLE_EQ(times(in_stages(), one_node({0.97, 0.97}))[0], 1) << "two timings of one thing";
}

// What a kernel meets is not known: anything between alone and together.
TEST(SharedMemory, IsAsUnsureAsWhatIsMet) {
  const auto first = [](const Shares& alone) {
    return price(make_plan(two_layers(), in_stages()).value(), one_node(alone))[0].prices.front().estimate.time;
  };
  const double share = first({0.5, 0.5}).time / Seconds{1e-3};
  EXPECT_NEAR(first({0.5, 0.5}).relative_error, std::hypot(first({0, 0}).relative_error, 0.5 / std::sqrt(12.0) / share),
              1e-9);
}

// Stages depend on each other then, which formulas of one stage do not know.
TEST(SharedMemory, HasNoClosedForm) {
  Strategy strategy = in_stages();
  strategy.stage_starts.clear();
  EXPECT_TRUE(closed::has_closed_form(strategy, one_node({0, 0})));
  EXPECT_FALSE(closed::has_closed_form(strategy, one_node({0.5, 0.5})));
  strategy.data = 2;
  EXPECT_TRUE(closed::has_closed_form(strategy, slowed_cluster(in_stages(2), 2, 2, {0.5, 0.5}))) << "one stage a node";
  strategy.pipeline = strategy.data = 1;
  EXPECT_TRUE(closed::has_closed_form(strategy, one_node({0.5, 0.5})));
}

// What is changed beside kernels leaves them as they are; as calibrated they are where that is asked for.
TEST(SharedMemory, StaysWithAClusterThatIsChanged) {
  const Cluster cluster = one_node({0.5, 0.25});
  const std::vector<std::string> changes{"device.memory=64GiB"};
  const Cluster changed = sibyl::changed(cluster, changes, DType::f32).value();
  EXPECT_EQ(times(in_stages(), changed), times(in_stages(), cluster));
  Cluster together = cluster;
  together.kernels = cluster.kernels.as_timed();
  EXPECT_EQ(times(in_stages(), together), (std::vector<double>{1, 1}));
}

// Kernels between two that were timed alone lie between their shares.
TEST(SharedMemory, IsInterpolatedLikeTimes) {
  const auto relu = [](int elements) {
    return parse_kernel_key("forward unary[" + std::to_string(elements) + "]->[" + std::to_string(elements) + "]:f32")
        .value();
  };
  std::vector<KernelSample> samples;
  for (const auto& [elements, share] : {std::pair{1 << 18, 0.8}, {1 << 20, 0.7}, {1 << 22, 0.5}}) {
    samples.push_back({relu(elements), Seconds{elements * 1e-9}, 0.0, 100, {}, {}, {}});
    samples.back().alone = share * samples.back().time;
  }
  const KernelTable table(test::cpu_device(), std::move(samples));
  EXPECT_DOUBLE_EQ(table.estimate(relu(1 << 20)).alone, 0.7);
  EXPECT_GT(table.estimate(relu(1 << 21)).alone, 0.5);
  EXPECT_LT(table.estimate(relu(1 << 21)).alone, 0.8);
}

}  // namespace
}  // namespace sibyl

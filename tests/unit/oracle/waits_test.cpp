// Waiting for the slowest at exchanges in the middle of a pass.
#include "oracle/cost/waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "oracle/cost/price.h"
#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

constexpr double expected_of_two = 0.5895;  // Phi^-1(1.625 / 2.25)

// Every kernel takes 1 ms, give or take `spread`.
Cluster even_cluster(const Plan& plan, double spread) {
  const Device device = test::cpu_device();
  std::vector<KernelSample> samples;
  for (KernelKey& key : kernels_of(plan, device.backend)) {
    KernelSample& sample = samples.emplace_back();
    sample.key = std::move(key);
    sample.time = Seconds{1e-3};
    sample.spread = spread;
    sample.runs = 100;
  }
  return test::cluster(2, 1, BytesPerSecond{1e9}, std::move(samples), device);
}

// fc1 and fc3 by columns, fc2 and fc4 by rows: fc1, relu, fc2, [sum], bias, relu, [split], fc3, relu, fc4, [sum], bias,
// loss. Forward meets at the sums, after 3 kernels and after 5 more; backward where fc3's input was taken, after bias
// and loss and the gradients of loss, bias, fc4, relu and fc3: 7. Independent spreads of 0.1 ms add up as squares.
TEST(Waits, GrowWithTheRootOfWhatRanSinceTheLastMeeting) {
  const Graph graph = test::mlp({4, 8, 6, 8, 6}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  strategy.tensor = 2;
  const Plan plan = *make_plan(graph, strategy);
  const Stage& stage = plan.stages[0];
  const PricedStage priced = price(plan, stage, even_cluster(plan, 0.1));
  std::vector<double> forward, backward;
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const ExchangeWait& wait = priced.exchanges[i].wait;
    if (priced.exchanges[i].forward) forward.push_back(wait.forward.value());
    if (priced.exchanges[i].backward) backward.push_back(wait.backward.value());
  }
  const double once = expected_of_two * 0.1e-3;
  ASSERT_EQ(forward.size(), 2U);
  EXPECT_NEAR(forward[0], once * std::sqrt(3.0), 1e-3 * once);
  EXPECT_NEAR(forward[1], once * std::sqrt(5.0), 1e-3 * once);
  ASSERT_EQ(backward.size(), 1U);
  EXPECT_NEAR(backward[0], once * std::sqrt(7.0), 1e-3 * once);

  // The step is later by just that, and nobody waits for kernels that always take the same.
  const double later = predict(graph, strategy, even_cluster(plan, 0.1))->step_time.value(),
               even = predict(graph, strategy, even_cluster(plan, 0.0))->step_time.value();
  EXPECT_NEAR(later - even, once * (std::sqrt(3.0) + std::sqrt(5.0) + std::sqrt(7.0)), 1e-3 * once);
}

// Where it was measured how ranks meet, that counts, and kernels' own spreads do not. Windows of 1, 2, 4 and 8 ms are
// late by 1, 1.5, 2 and 2.4 tenths: of 3 kernels of 1 ms between the second and the third, in logarithms, of 5
// and 7 on from there, less 0.03 ms for each, which whole steps drift. Exchanges take 0.5 ms longer after that much.
TEST(Waits, AreWhatRanksThatMeetShowed) {
  const Graph graph = test::mlp({4, 8, 6, 8, 6}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  strategy.tensor = 2;
  const Plan plan = *make_plan(graph, strategy);
  Cluster cluster = even_cluster(plan, 0.1);
  MeetingSample series{2, Seconds{0.5e-3}, {}};
  for (const auto& [computing, late] : {std::pair{1e-3, 0.10e-3}, {2e-3, 0.15e-3}, {4e-3, 0.20e-3}, {8e-3, 0.24e-3}})
    series.windows.push_back({Seconds{computing}, Seconds{late}});
  cluster.meetings = Meetings({series});
  const PricedStage priced = price(plan, plan.stages[0], cluster);
  std::vector<double> waits;
  for (const PricedExchange& exchange : priced.exchanges) {
    if (exchange.forward) waits.push_back(exchange.wait.forward.value());
    if (exchange.backward) waits.push_back(exchange.wait.backward.value());
  }
  const auto between = [](double low, double high, double octaves) { return low * std::pow(high / low, octaves); };
  const double three = between(0.15e-3, 0.20e-3, std::log2(3.0 / 2)),
               five = between(0.20e-3, 0.24e-3, std::log2(5.0 / 4)),
               seven = between(0.20e-3, 0.24e-3, std::log2(7.0 / 4));
  std::ranges::sort(waits);
  ASSERT_EQ(waits.size(), 3U);
  EXPECT_NEAR(waits[0], seven - 7 * 0.03e-3 + 0.5e-3, 1e-9);
  EXPECT_NEAR(waits[1], five - 5 * 0.03e-3 + 0.5e-3, 1e-9);
  EXPECT_NEAR(waits[2], three - 3 * 0.03e-3 + 0.5e-3, 1e-9);
  // Four ranks wait longer for their last one, by what the expected maximum of four is over that of two.
  series.ranks = 4;
  cluster.meetings = Meetings({series});
  const PricedStage of_four = price(plan, plan.stages[0], cluster);
  double first = 0;
  for (const PricedExchange& exchange : of_four.exchanges) first = std::max(first, exchange.wait.forward.value());
  EXPECT_NEAR(first, (three - 3 * 0.03e-3) * expected_of_two / 1.0491 + 0.5e-3, 1e-7);
}

// The same plan, every kernel 1 ms, every sum 10 ms and in turn 4. While others sum the first ranks compute, but what
// is not there cannot be computed: between the two sums forward are 5 ms, which leaves 5. Before the first one of a
// pass there is another pass.
TEST(Waits, WhoIsDoneFirstGoesOn) {
  const Graph graph = test::mlp({4, 8, 6, 8, 6}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  strategy.tensor = 2;
  const Plan plan = *make_plan(graph, strategy);
  const auto cluster_with = [&](std::optional<double> in_turn) {
    Cluster cluster = even_cluster(plan, 0.0);
    std::vector<CollectiveSample> samples;
    for (const double bytes : {16.0, 4096.0})
      samples.push_back({Collective::all_reduce,
                         Algorithm::automatic,
                         {1, 2, 1},
                         Bytes{bytes},
                         Seconds{10e-3},
                         0.0,
                         "test",
                         in_turn});
    cluster.network = cluster.network.knowing(samples);
    return cluster;
  };
  const PricedStage priced = price(plan, plan.stages[0], cluster_with(0.4));
  std::vector<double> forward, backward;
  for (const PricedExchange& exchange : priced.exchanges) {
    if (exchange.forward) forward.push_back(exchange.forward->time.time.value());
    if (exchange.backward) backward.push_back(exchange.backward->time.time.value());
  }
  ASSERT_EQ(forward.size(), 2U);
  EXPECT_NEAR(forward[0], 4e-3, 1e-12);
  EXPECT_NEAR(forward[1], 5e-3, 1e-12);
  ASSERT_EQ(backward.size(), 1U);
  EXPECT_NEAR(backward[0], 4e-3, 1e-12);
  const auto step = [&](std::optional<double> in_turn) {
    return predict(graph, strategy, cluster_with(in_turn))->step_time.value();
  };
  EXPECT_NEAR(step({}) - step(0.4), 17e-3, 1e-9);
  EXPECT_EQ(step({}), step(1.0));
  EXPECT_NEAR(step(1.2) - step({}), 6e-3, 1e-9);  // where ranks that begin at other times disturb each other
  // Gradients of replicas are exchanged one after the other, with nothing to compute in between.
  strategy.tensor = 1;
  strategy.data = 2;
  EXPECT_EQ(predict(graph, strategy, cluster_with(0.4))->step_time,
            predict(graph, strategy, cluster_with({}))->step_time);
}

// Replicas exchange nothing in the middle of a pass.
TEST(Waits, ReplicasDoNotMeet) {
  const Graph graph = test::mlp({4, 8, 6}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  strategy.data = 2;
  const Plan plan = *make_plan(graph, strategy);
  EXPECT_EQ(predict(graph, strategy, even_cluster(plan, 0.1))->step_time,
            predict(graph, strategy, even_cluster(plan, 0.0))->step_time);
}

}  // namespace
}  // namespace sibyl

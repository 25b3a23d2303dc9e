// Where an order puts the ranks of a group, its messages are priced.
#include <gtest/gtest.h>

#include "oracle/cost/price.h"
#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

Strategy strategy_of(std::string_view parallel, std::string_view order) {
  Strategy strategy;
  EXPECT_TRUE(parse_parallel(parallel, strategy).has_value());
  EXPECT_TRUE(parse_order(order, strategy).has_value());
  strategy.global_batch = 2 * strategy.data;
  return strategy;
}

struct Order : testing::Test {
  const Graph graph = test::mlp({8, 8, 8, 8, 8}, 2);
  const Cluster cluster = test::cluster(2, 4);  // two nodes of four devices

  Seconds collective(Collective kind, Bytes bytes, GroupPlacement group) const {
    return cluster.network.collective(kind, bytes, group).time.time;
  }
  Plan plan_of(std::string_view parallel, std::string_view order) const {
    return make_plan(graph, strategy_of(parallel, order)).value();
  }
};

// Of four tensor-parallel ranks, fc2's partial sums of 2 x 8 f32 are added up.
TEST_F(Order, ExchangesCrossTheLinksOfTheirGroups) {
  const auto first_exchange = [&](std::string_view order) {
    const Plan plan = plan_of("data=2,tensor=4", order);
    const std::vector<PricedStage> priced = price(plan, cluster);
    for (const PricedExchange& exchange : priced.front().exchanges)
      if (exchange.forward) return exchange.forward->time.time;
    return Seconds{};
  };
  const Bytes bytes{2 * 8 * 4};
  EXPECT_EQ(first_exchange(""), collective(Collective::all_reduce, bytes, {4, 1, 1}));
  EXPECT_EQ(first_exchange("data,tensor"), collective(Collective::all_reduce, bytes, {2, 2, 2}));
}

// The two replicas of a part lie on two nodes, four such pairs on each; or side by side.
TEST_F(Order, GradientsCrossTheLinksOfReplicas) {
  const auto message = [&](std::string_view order) {
    return price(plan_of("data=2,tensor=4", order), cluster).front().messages.front();
  };
  const PricedMessage usual = message(""), near = message("data");
  EXPECT_EQ(usual.estimate.time.time, collective(Collective::all_reduce, usual.bytes, {1, 2, 4}));
  EXPECT_EQ(near.estimate.time.time, collective(Collective::all_reduce, near.bytes, {2, 1, 2}));
}

// Stages on two nodes: four pairs share the NICs. Stages side by side: two pairs in each node.
TEST_F(Order, LinksJoinTheRanksOfNeighbouringStages) {
  const auto send = [&](std::string_view order) {
    return price(plan_of("data=4,pipeline=2", order), cluster).front().send_forward->time;
  };
  const Bytes bytes{2 * 8 * 4};
  EXPECT_EQ(send(""), cluster.network.point_to_point(bytes, false, 4).time);
  EXPECT_EQ(send("pipeline"), cluster.network.point_to_point(bytes, true, 2).time);
}

// The prediction names the order where it is not the usual one.
TEST_F(Order, IsPartOfThePrediction) {
  EXPECT_EQ(predict(graph, strategy_of("data=2,tensor=4", ""), cluster)->order, "");
  EXPECT_EQ(predict(graph, strategy_of("data=2,tensor=4", "data"), cluster)->order, "data,tensor");
}

// Each kind by itself. Two replicas of two ranks that share tensors, two stages: half of every gradient; the sums between
// operations; what a stage sends on. With ZeRO 1 gradients are scattered and parameters gathered, half of each.
TEST(BytesByKind, TellsWhatIsSent) {
  const Graph graph = test::mlp({8, 8, 8, 8, 8}, 2);
  Strategy strategy = strategy_of("data=2,tensor=2,pipeline=2", "");
  strategy.stage_starts = {"fc3"};
  const BytesSent sent = bytes_by_kind(make_plan(graph, strategy).value(), 0, Algorithm::ring);
  // fc1 by rows (4 x 8 + 4), fc2 by columns (8 x 4) with a whole bias (8): 76 gradients; an all-reduce of two sends as many.
  EXPECT_EQ(sent.gradients, 76 * 4);
  EXPECT_EQ(sent.parameters, 0);
  // fc2's result is summed forward; fc1's input has no gradient. A ring of two sends the 2 x 8 elements once over.
  EXPECT_EQ(sent.exchanges, 16 * 4);
  EXPECT_EQ(sent.links, 16 * 4);
  EXPECT_EQ(sent.norms, 0);
  EXPECT_EQ(sent.total(), bytes_sent_per_step(make_plan(graph, strategy).value(), 0, Algorithm::ring));
  strategy = strategy_of("data=2", "");
  strategy.zero = 1;
  strategy.clip = 1;
  const BytesSent sharded = bytes_by_kind(make_plan(graph, strategy).value(), 0, Algorithm::ring);
  EXPECT_EQ(sharded.gradients, 4 * 72 / 2 * 4);
  EXPECT_EQ(sharded.parameters, 4 * 72 / 2 * 4);
  EXPECT_EQ(sharded.norms, 4);  // one f32: its square summed over both
}

}  // namespace
}  // namespace sibyl

// Fair rates and flows over time, by hand.
#include <gtest/gtest.h>

#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl::fabric {
namespace {

// Channel 0 of 1 B/s, channel 1 of 2 B/s. One flow over both, one over each: the first two have half of channel 0; the
// third has what the first leaves of channel 1.
FlowSet three_flows() { return FlowSet({1.0, 2.0}, {{{0, 1.0}, {1, 1.0}}, {{0, 1.0}}, {{1, 1.0}}}, {0, 0, 0}); }

TEST(FairRates, TheSlowestChannelFirst) {
  EXPECT_EQ(fair_rates(three_flows()), (std::vector<double>{0.5, 0.5, 1.5}));
  EXPECT_EQ(fair_rates(three_flows(), {true, false, true}), (std::vector<double>{1.0, 0.0, 1.0}));
}

// A flow of which half crosses a channel weighs half: r + r/2 = 3.
TEST(FairRates, OfSharesOfAFlow) {
  const FlowSet flows({3.0}, {{{0, 1.0}}, {{0, 0.5}}}, {0, 0});
  EXPECT_EQ(fair_rates(flows), (std::vector<double>{2.0, 2.0}));
}

TEST(FairRates, NothingToCrossIsNoLimit) {
  const FlowSet flows({3.0}, {{}, {{0, 1.0}}}, {0, 0});
  EXPECT_TRUE(std::isinf(fair_rates(flows)[0]));
  EXPECT_EQ(fair_rates(flows)[1], 3.0);
}

// 1 and 2 bytes over 1 B/s: both at 1/2 until 2 s; the second's last byte alone until 3 s.
TEST(FlowsOverTime, ShareAnewWhenOneEnds) {
  const FlowSet flows({1.0}, {{{0, 1.0}}, {{0, 1.0}}}, {0, 0});
  const std::vector<Flow> bytes{{0, 1, 1.0, 0.0}, {0, 1, 2.0, 0.0}};
  EXPECT_EQ(finish_times(flows, bytes), (std::vector<double>{2.0, 3.0}));
}

// The second begins at 1 + 0.5 s of latency, when 1.5 of the first's 2 bytes have moved: 0.5 more take a second.
TEST(FlowsOverTime, BeginWhenTheirLatencyHasPassed) {
  const FlowSet flows({1.0}, {{{0, 1.0}}, {{0, 1.0}}}, {0, 0.5});
  const std::vector<Flow> bytes{{0, 1, 2.0, 0.0}, {0, 1, 2.0, 1.0}};
  EXPECT_EQ(finish_times(flows, bytes), (std::vector<double>{2.5, 4.0}));
}

// After 10^9 s a double knows 0.1 us: a flow that lasts 1 ns is over when it begins, and one of 1 s a second later.
TEST(FlowsOverTime, EndFarFromTheirStart) {
  const FlowSet flows({1.0}, {{{0, 1.0}}, {{0, 1.0}}}, {0, 0});
  const std::vector<Flow> bytes{{0, 1, 1e-9, 1e9}, {0, 1, 1.0, 1e9}};
  const std::vector<double> ends = finish_times(flows, bytes);
  EXPECT_EQ(ends[0], 1e9);
  EXPECT_NEAR(ends[1], 1e9 + 1.0, 1e-6);
}

TEST(FlowsOverTime, AFlowToItselfTakesNoTime) {
  const Fabric ring = test::direct(Torus{{3}}, 3);
  const std::vector<Flow> flows{{1, 1, 1e9, 0.0}, {0, 1, test::rate, 0.0}};
  const FlowSet set(ring, ring.capacities(), flows);
  const auto ends = finish_times(set, flows);
  EXPECT_EQ(ends[0], 0.0);
  EXPECT_NEAR(ends[1], 1.0 + 1e-6, 1e-12);
}

// What leaves a sender comes to its receiver, and no switch keeps or adds any.
TEST(LinkLoads, BytesAreConserved) {
  TopologySpec spec = test::cpu_spec(16, 2);
  spec.nics_per_node = 2;
  for (const Outside& network :
       {Outside{Torus{{4, 4}}}, Outside{FatTree{{8, 4}, {3}}}, Outside{Dragonfly{4, 4, 2, 1}},
        Outside{DragonflyPlus{4, 4, 2, 2, 2}}, Outside{RailOptimised{4, 4, 2}}, Outside{FullyConnected{}}})
    for (const Ecmp ecmp : {Ecmp::split, Ecmp::hash, Ecmp::destination}) {
      const Fabric fabric = Fabric::make(spec, test::shape(network, ecmp)).value();
      std::vector<double> balance(fabric.graph().vertices(), 0.0);
      double sent = 0.0, left = 0.0, arrived = 0.0;
      for (const Flow& flow : test::all_pairs(fabric, 1.0)) {
        std::vector<Step> steps;
        fabric.route(flow.from, flow.to, 7, steps);
        sent += 1.0;
        for (const Step& step : steps) {
          const Edge& edge = fabric.graph().edges()[step.edge];
          balance[edge.from] -= step.share;
          balance[edge.to] += step.share;
        }
      }
      for (VertexId v = 0; v < balance.size(); ++v) {
        // Every device sends as much as it receives here, so nothing is left anywhere.
        EXPECT_NEAR(balance[v], 0.0, 1e-9) << fabric.graph().name(v);
        if (balance[v] < 0) left -= balance[v];
        if (balance[v] > 0) arrived += balance[v];
      }
      EXPECT_NEAR(left, arrived, 1e-9);
      EXPECT_EQ(sent, 32.0 * 31.0);
    }
}

// A switch keeps nothing of a single flow either, and its end gets all of it.
TEST(LinkLoads, OneFlowArrivesWhole) {
  Dragonfly fly{5, 4, 1, 2, true};
  const Fabric fabric = test::with_nics(fly, 20);
  for (const int to : {1, 7, 19}) {
    std::map<VertexId, double> balance;
    for (const Step& step : test::way(fabric, 0, to)) {
      balance[fabric.graph().edges()[step.edge].from] -= step.share;
      balance[fabric.graph().edges()[step.edge].to] += step.share;
    }
    double gained = 0.0;
    int unbalanced = 0;
    for (const auto& [vertex, bytes] : balance)
      if (std::abs(bytes) > 1e-9) ++unbalanced, gained = std::max(gained, bytes);
    EXPECT_EQ(unbalanced, 2) << to;
    EXPECT_NEAR(gained, 1.0, 1e-9);
  }
}

}  // namespace
}  // namespace sibyl::fabric

// Shapes and routes: counts of cables, ways and link loads, by hand.
#include "netmodel/fabric/fabric.h"

#include <gmock/gmock.h>

#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl::fabric {
namespace {

using testing::ElementsAre;

// Two channels and two edges a cable, where nothing is bundled.
std::size_t cables(const Fabric& fabric) { return fabric.graph().edges().size() / 2; }

TEST(TorusFabric, FourByFour) {
  const Fabric torus = test::direct(Torus{{4, 4}}, 16);
  EXPECT_EQ(cables(torus), 32U);  // two for each node
  EXPECT_EQ(torus.devices(), 16);
  // First along the first dimension: (0,0) -> (1,0) -> (1,1). The shorter way round: (0,0) -> (3,0).
  EXPECT_THAT(test::names(torus, 0, 5), ElementsAre("node 1 device 0", "node 5 device 0"));
  EXPECT_THAT(test::names(torus, 0, 3), ElementsAre("node 3 device 0"));
  // Half-way round both directions are as short: half of the message each.
  const auto both = test::way(torus, 0, 2);
  ASSERT_EQ(both.size(), 4U);
  for (const Step& step : both) EXPECT_EQ(step.share, 0.5);
  EXPECT_NEAR(torus.latency(both), 2e-6, 1e-15);
}

// Each node to its neighbour: every channel of that direction carries one message, the others nothing.
TEST(TorusFabric, NeighbourShiftSharesNothing) {
  const Fabric torus = test::direct(Torus{{4, 4}}, 16);
  const auto capacities = torus.capacities();
  std::vector<Flow> flows;
  for (int i = 0; i < 16; ++i) flows.push_back({i, i / 4 * 4 + (i + 1) % 4, 1.0, 0.0});
  const FlowSet set(torus, capacities, flows);
  EXPECT_EQ(set.channels().size(), 16U);
  for (const double load : set.loads(flows)) EXPECT_EQ(load, 1.0);
  for (const double rate : fair_rates(set)) EXPECT_DOUBLE_EQ(rate, test::rate);
}

// To the node two further on in a ring of five: each channel is crossed by two messages.
TEST(TorusFabric, ShiftByTwoHalvesTheRate) {
  const Fabric ring = test::direct(Torus{{5}}, 5);
  EXPECT_DOUBLE_EQ(test::last_end(ring, test::shift(ring, 2)), 2.0);
  const Fabric line = test::direct(Torus{{5}, false}, 5);
  EXPECT_EQ(cables(line), 4U);
  // All to node 0 of a line: its one cable carries four messages.
  std::vector<Flow> incast;
  for (int i = 1; i < 5; ++i) incast.push_back({i, 0, test::rate, 0.0});
  EXPECT_DOUBLE_EQ(test::last_end(line, incast), 4.0);
}

TEST(TorusFabric, AnExtentOfTwoHasOneCable) {
  EXPECT_EQ(cables(test::direct(Torus{{2, 2, 2}}, 8)), 12U);  // a cube
  EXPECT_EQ(cables(test::direct(Torus{{2, 1}}, 2)), 1U);
}

// Every NIC has a router, and all of a node's NICs the same one.
TEST(TorusFabric, WithNics) {
  TopologySpec spec = test::cpu_spec(4, 2);
  spec.nics_per_node = 2;
  const Fabric ring = Fabric::make(spec, test::shape(Torus{{4}})).value();
  EXPECT_THAT(test::names(ring, 1, 3),
              ElementsAre("node 0 NIC 1", "router 0", "router 1", "node 1 NIC 1", "node 1 device 1"));
  // A router's cable carries both NICs' messages.
  EXPECT_DOUBLE_EQ(test::last_end(ring, test::shift(ring, 2)), 2.0);
}

// k = 4: 16 hosts, 8 leaves, 8 switches, 4 spines; 16 cables at each of three levels.
TEST(FatTreeFabric, KAry) {
  const Fabric tree = test::with_nics(FatTree::k_ary(4), 16, 1, Ecmp::destination);
  EXPECT_EQ(cables(tree), 48U + 16U + 16U);        // and each device's to its hub and NIC
  EXPECT_EQ(test::names(tree, 0, 1).size(), 4U);   // NIC, leaf, NIC, device
  EXPECT_EQ(test::names(tree, 0, 2).size(), 6U);   // by way of the pod
  EXPECT_EQ(test::names(tree, 0, 15).size(), 8U);  // by way of a spine
}

// Full bisection: half of the hosts to the other half, nobody waits.
TEST(FatTreeFabric, BisectionIsFull) {
  for (const Ecmp ecmp : {Ecmp::split, Ecmp::destination}) {
    const Fabric tree = test::with_nics(FatTree::k_ary(4), 16, 1, ecmp);
    EXPECT_DOUBLE_EQ(test::last_end(tree, test::shift(tree, 8)), 1.0) << to_string(ecmp);
  }
  // All to all of 16: the NICs are the limit, 15 messages each.
  const Fabric tree = test::with_nics(FatTree::k_ary(4), 16);
  EXPECT_NEAR(test::last_end(tree, test::all_pairs(tree)), 15.0, 1e-9);
}

// Four leaves of four. All to the next leaf: uplinks have a third of what NICs have. All to all: 4 · 12 messages over a
// leaf's uplinks of 4/3 of a NIC's rate: 36, where the NICs alone take 15.
TEST(LeafSpineFabric, OversubscriptionDividesBandwidth) {
  const LeafSpine leaves{4, 4, 2};
  const Fabric full = test::with_nics(leaves, 16), narrow = test::with_nics(leaves, 16, 1, Ecmp::split, 3.0);
  EXPECT_NEAR(test::last_end(full, test::shift(full, 4)), 1.0, 1e-9);
  EXPECT_NEAR(test::last_end(narrow, test::shift(narrow, 4)), 3.0, 1e-9);
  EXPECT_NEAR(test::last_end(narrow, test::shift(narrow, 1)), 1.0, 1e-9);  // one of a leaf climbs
  EXPECT_NEAR(test::last_end(full, test::all_pairs(full)), 15.0, 1e-9);
  EXPECT_NEAR(test::last_end(narrow, test::all_pairs(narrow)), 36.0, 1e-9);
}

// A hash may send two flows up one cable; an even split never lets them meet.
TEST(LeafSpineFabric, HashedFlowsCollide) {
  const LeafSpine leaves{4, 2, 4};
  const Fabric split = test::with_nics(leaves, 8), hashed = test::with_nics(leaves, 8, 1, Ecmp::hash);
  EXPECT_NEAR(test::last_end(split, test::shift(split, 4)), 1.0, 1e-9);
  const double collided = test::last_end(hashed, test::shift(hashed, 4));
  EXPECT_GE(collided, 2.0);  // 4! / 4^4 = 9 % that none would on one side
  EXPECT_NEAR(collided, std::round(collided), 1e-9);
}

// Rail i joins the i-th NICs; to another rail by way of the node's own device there (NVSwitch), or by a spine.
TEST(RailFabric, KeepsToItsRail) {
  TopologySpec spec = test::cpu_spec(4, 2);
  spec.nics_per_node = 2;
  RailOptimised rails{4, 1, 1, true};
  const Fabric inside = Fabric::make(spec, test::shape(rails)).value();
  EXPECT_THAT(test::names(inside, 1, 3), ElementsAre("node 0 NIC 1", "leaf 1", "node 1 NIC 1", "node 1 device 1"));
  EXPECT_THAT(test::names(inside, 0, 3), ElementsAre("node 0 hub 0", "node 0 device 1", "node 0 NIC 1", "leaf 1",
                                                     "node 1 NIC 1", "node 1 device 1"));
  rails.cross_inside = false;
  const Fabric spine = Fabric::make(spec, test::shape(rails)).value();
  EXPECT_THAT(test::names(spine, 0, 3),
              ElementsAre("node 0 NIC 0", "leaf 0", "spine 0", "leaf 1", "node 1 NIC 1", "node 1 device 1"));
}

// Three groups of two routers with a global link each: 0.0-1.1, 1.0-2.1, 2.0-0.1 (port q of group i goes to i + 1 + q).
TEST(DragonflyFabric, MinimalAndValiant) {
  Dragonfly fly{3, 2, 1, 1};
  const Fabric minimal = test::with_nics(fly, 6);
  EXPECT_EQ(cables(minimal), 6U + 3U + 3U + 12U);  // NICs, local, global, devices
  EXPECT_THAT(test::names(minimal, 0, 3),
              ElementsAre("node 0 NIC 0", "router 0", "router 3", "node 3 NIC 0", "node 3 device 0"));
  EXPECT_THAT(test::names(minimal, 0, 2),
              ElementsAre("node 0 NIC 0", "router 0", "router 3", "router 2", "node 2 NIC 0", "node 2 device 0"));
  fly.valiant = true;
  const Fabric valiant = test::with_nics(fly, 6);
  // By group 2: over router 1 to 2.0, router 4 -> 5, whose global link leads to 1.0, router 2.
  EXPECT_THAT(test::names(valiant, 0, 2), ElementsAre("node 0 NIC 0", "router 0", "router 1", "router 4", "router 5",
                                                      "router 2", "node 2 NIC 0", "node 2 device 0"));
}

// All of a group to the next: minimal routing has one global link for them, Valiant's spreads over the other groups.
TEST(DragonflyFabric, ValiantSpreadsAdversarialTraffic) {
  Dragonfly fly{9, 4, 2, 2};
  const Fabric minimal = test::with_nics(fly, 72);
  fly.valiant = true;
  const Fabric valiant = test::with_nics(fly, 72);
  EXPECT_NEAR(test::last_end(minimal, test::shift(minimal, 8)), 8.0, 1e-9);
  EXPECT_LT(test::last_end(valiant, test::shift(valiant, 8)), 4.0);
}

// Three groups of two leaves and two spines with a link each: spine 0 of a group leads to the next group, spine 1 to
// the one after. Cables: 6 leaves with a NIC and two spines, 3 global ones; and each device's to its hub and NIC.
TEST(DragonflyPlusFabric, UpOverAndDown) {
  const Fabric plus = test::with_nics(DragonflyPlus{3, 2, 2, 1, 1}, 6);
  EXPECT_EQ(plus.nodes(), 6);
  EXPECT_EQ(cables(plus), 6U + 12U + 3U + 12U);
  EXPECT_THAT(test::names(plus, 0, 3),
              ElementsAre("node 0 NIC 0", "leaf 0", "spine 0", "spine 3", "leaf 3", "node 3 NIC 0", "node 3 device 0"));
  EXPECT_THAT(test::names(plus, 0, 4),
              ElementsAre("node 0 NIC 0", "leaf 0", "spine 1", "spine 4", "leaf 4", "node 4 NIC 0", "node 4 device 0"));
  // In a group half by each spine.
  const auto inside = test::way(plus, 0, 1);
  ASSERT_EQ(inside.size(), 8U);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_EQ(inside[i].share, 0.5);
  // Two of a leaf stay at it.
  EXPECT_EQ(test::names(test::with_nics(DragonflyPlus{3, 2, 2, 2, 1}, 12), 0, 1).size(), 4U);
}

// Five groups, two spines with four links each: two links to each other group, ports 0 and 4 to the next, one of either
// spine. All eight of a group to the next group: 4 NICs' worth over each link; in the group everything passes.
TEST(DragonflyPlusFabric, GlobalLinksAreShared) {
  const Fabric plus = test::with_nics(DragonflyPlus{5, 4, 2, 2, 4}, 40);
  EXPECT_NEAR(test::last_end(plus, test::shift(plus, 8)), 4.0, 1e-9);
  EXPECT_NEAR(test::last_end(plus, test::shift(plus, 1)), 1.0, 1e-9);
  FabricSpec faster = test::shape(DragonflyPlus{5, 4, 2, 2, 4, {BytesPerSecond{4 * test::rate}, Seconds{}}});
  const Fabric fast = Fabric::make(test::cpu_spec(40, 1), faster).value();
  // Up to a spine go two NICs' halves at most.
  EXPECT_NEAR(test::last_end(fast, test::shift(fast, 8)), 1.0, 1e-9);
}

TEST(FullyConnectedFabric, EachPairHasItsCable) {
  const Fabric full = test::direct(FullyConnected{}, 5);
  EXPECT_EQ(cables(full), 10U);
  EXPECT_DOUBLE_EQ(test::last_end(full, test::all_pairs(full)), 1.0);
}

Custom two_nodes_and_a_switch(Duplex duplex, double back) {
  const LinkRate link{BytesPerSecond{test::rate}, Seconds{1e-6}, duplex};
  return Custom{
      {{"node0", "s", link, BytesPerSecond{back}, 1, "f:1"}, {"s", "node1", link, BytesPerSecond{}, 1, "f:2"}}};
}

TEST(CustomFabric, DuplexAndDirections) {
  const auto both_ways = [](const Fabric& fabric) {
    return test::last_end(fabric, {{0, 1, test::rate, 0.0}, {1, 0, test::rate, 0.0}});
  };
  EXPECT_DOUBLE_EQ(both_ways(test::with_nics(two_nodes_and_a_switch(Duplex::full, 0), 2)), 1.0);
  EXPECT_DOUBLE_EQ(both_ways(test::with_nics(two_nodes_and_a_switch(Duplex::half, 0), 2)), 2.0);
  EXPECT_DOUBLE_EQ(both_ways(test::with_nics(two_nodes_and_a_switch(Duplex::full, test::rate / 5), 2)), 5.0);
}

// Three nodes cabled one to the next, and three switches beside them: the way over node 1 is the shorter, but it is a
// host. Its own cables are used for what is its own. Without switches it must pass on, and where links end at the
// devices these are the switches.
TEST(CustomFabric, HostsPassOnNothingWhereSwitchesJoinAll) {
  const LinkRate link{BytesPerSecond{test::rate}, Seconds{1e-6}, Duplex::full};
  const auto joined = [&](const std::vector<std::pair<std::string, std::string>>& ends) {
    Custom custom;
    for (const auto& [from, to] : ends) custom.cables.push_back({from, to, link, {}, 1, ""});
    return custom;
  };
  const Custom line = joined({{"node0", "node1"}, {"node1", "node2"}});
  EXPECT_THAT(test::names(test::with_nics(line, 3), 0, 2),
              ElementsAre("node 0 NIC 0", "node 1 NIC 0", "node 2 NIC 0", "node 2 device 0"));
  const Custom both = joined(
      {{"node0", "node1"}, {"node1", "node2"}, {"node0", "a"}, {"a", "b"}, {"b", "c"}, {"c", "node2"}, {"b", "node1"}});
  const Fabric hosts = test::with_nics(both, 3);
  EXPECT_THAT(test::names(hosts, 0, 2), ElementsAre("node 0 NIC 0", "a", "b", "c", "node 2 NIC 0", "node 2 device 0"));
  EXPECT_THAT(test::names(hosts, 0, 1), ElementsAre("node 0 NIC 0", "node 1 NIC 0", "node 1 device 0"));
  EXPECT_THAT(test::names(test::direct(both, 3), 0, 2), ElementsAre("node 1 device 0", "node 2 device 0"));
}

// Node 0 has cables to two switches that nothing else joins: the nodes behind them have no other way than by its NIC.
TEST(CustomFabric, HostsPassOnWhereThereIsNoOtherWay) {
  const LinkRate link{BytesPerSecond{test::rate}, Seconds{1e-6}, Duplex::full};
  const Custom custom{{{"node0", "a", link, {}, 1, ""},
                       {"node1", "a", link, {}, 1, ""},
                       {"node0", "b", link, {}, 1, ""},
                       {"node2", "b", link, {}, 1, ""}}};
  EXPECT_THAT(test::names(test::with_nics(custom, 3), 1, 2),
              ElementsAre("node 1 NIC 0", "a", "node 0 NIC 0", "b", "node 2 NIC 0", "node 2 device 0"));
}

TEST(CustomFabric, SaysWhatIsWrong) {
  const auto error = [](Custom custom, int nodes) {
    return Fabric::make(test::cpu_spec(nodes, 1), test::shape(std::move(custom))).error();
  };
  EXPECT_EQ(error(two_nodes_and_a_switch(Duplex::full, 0), 3).message,
            "no way leads from node 0 NIC 0 to node 2 NIC 0");
  EXPECT_EQ(error(two_nodes_and_a_switch(Duplex::full, 0), 1).where, "f:2");  // there is no node 1
  const LinkRate link{BytesPerSecond{1e9}, Seconds{}, Duplex::full};
  EXPECT_EQ(error(Custom{{{"s", "s", link, {}, 1, "f:7"}}}, 1).where, "f:7");
  EXPECT_EQ(error(Custom{{{"node0.nic4", "s", link, {}, 1, "f:8"}}}, 1).where, "f:8");
}

TEST(AnyFabric, RefusesWhatCannotBe) {
  const auto fails = [](const Outside& network, int nodes = 1) {
    return !Fabric::make(test::cpu_spec(nodes, 1), test::shape(network));
  };
  EXPECT_TRUE(fails(Torus{{}}));
  EXPECT_TRUE(fails(Torus{{4, 0}}));
  EXPECT_TRUE(fails(Torus{{4, 4}}, 17));
  EXPECT_TRUE(fails(Torus{{100000, 100000}}));
  EXPECT_TRUE(fails(FatTree{{4, 4}, {}}));
  EXPECT_TRUE(fails(FatTree{{4, 4}, {1, 1}}));
  EXPECT_TRUE(fails(Dragonfly{10, 2, 1, 1}));  // two global links for nine other groups
  EXPECT_TRUE(fails(DragonflyPlus{10, 4, 2, 1, 1}));  // likewise
  EXPECT_TRUE(fails(DragonflyPlus{2, 1, 0, 1, 1}));
  EXPECT_TRUE(fails(DragonflyPlus{2, 1, 1, 1, 1}, 3));  // room for two
  EXPECT_TRUE(fails(LeafSpine{0, 1, 1}));
  EXPECT_FALSE(fails(Torus{{4, 4}}, 16));
}

// Four devices behind one NIC share it; with four NICs each has its own.
TEST(AnyFabric, DevicesShareNics) {
  TopologySpec spec = test::cpu_spec(2, 4);
  for (const int nics : {1, 2, 4}) {
    spec.nics_per_node = nics;
    const Fabric pair = Fabric::make(spec, test::shape(LeafSpine{2, 1, 1})).value();
    EXPECT_NEAR(test::last_end(pair, test::shift(pair, 4)), 4.0 / nics, 1e-9);
  }
  // One device with two NICs uses both.
  spec = test::cpu_spec(2, 1);
  spec.nics_per_node = 2;
  const Fabric both = Fabric::make(spec, test::shape(LeafSpine{2, 1, 1})).value();
  EXPECT_NEAR(test::last_end(both, test::shift(both, 1)), 0.5, 1e-9);
}

TEST(AnyFabric, BackgroundTakesItsShare) {
  FabricSpec busy = test::shape(LeafSpine{2, 1, 1});
  busy.background = 0.75;
  const Fabric fabric = Fabric::make(test::cpu_spec(2, 1), busy).value();
  EXPECT_NEAR(test::last_end(fabric, test::shift(fabric, 1)), 4.0, 1e-9);
}

// Every node sends to the next and receives from the one before: over different cables between nodes, but the same one
// to its NIC, which both ways share if the network's links are half duplex.
TEST(AnyFabric, HalfDuplexHoldsAtNicsToo) {
  for (const Outside& network :
       {Outside{Torus{{4}}}, Outside{Torus{{2, 2}}}, Outside{FullyConnected{}}, Outside{LeafSpine{4, 1, 1}},
        Outside{FatTree{{4}, {}}}, Outside{RailOptimised{4, 1, 1}}, Outside{Dragonfly{1, 1, 4, 1}},
        Outside{DragonflyPlus{1, 1, 1, 4, 1}}}) {
    FabricSpec half = test::shape(network);
    const Fabric full = Fabric::make(test::cpu_spec(4, 1), half).value();
    half.link.duplex = Duplex::half;
    const Fabric shared = Fabric::make(test::cpu_spec(4, 1), half).value();
    const std::vector<Flow> through_node_0{{0, 1, test::rate, 0.0}, {2, 0, test::rate, 0.0}};
    EXPECT_NEAR(test::last_end(full, through_node_0), 1.0, 1e-9) << network.index();
    EXPECT_NEAR(test::last_end(shared, through_node_0), 2.0, 1e-9) << network.index();
  }
}

// Routers of a torus, and of nodes that are all joined, are the nodes' own: one cable's latency for a hop. To a leaf
// there is one on either side.
TEST(AnyFabric, LatencyOfLinksCountsOncePerCable) {
  const auto latency = [](const Outside& network) {
    FabricSpec shape = test::shape(network);
    shape.link.latency = Seconds{1e-6};
    const Fabric fabric = Fabric::make(test::cpu_spec(4, 1), shape).value();
    return fabric.latency(test::way(fabric, 0, 1));
  };
  constexpr double both_nics = 10e-6;
  EXPECT_NEAR(latency(Torus{{4}}), both_nics + 1e-6, 1e-12);
  EXPECT_NEAR(latency(FullyConnected{}), both_nics + 1e-6, 1e-12);
  EXPECT_NEAR(latency(LeafSpine{4, 1, 1}), both_nics + 2e-6, 1e-12);
}

// 65,536 devices: 8,192 nodes on rails, and a route over four levels.
TEST(AnyFabric, OfManyDevices) {
  TopologySpec spec = test::cpu_spec(8192, 8);
  spec.nics_per_node = 8;
  const Fabric large = Fabric::make(spec, test::shape(RailOptimised{32, 256, 32})).value();
  EXPECT_EQ(large.devices(), 65536);
  EXPECT_EQ(test::names(large, 0, 65528).size(), 6U);
}

}  // namespace
}  // namespace sibyl::fabric

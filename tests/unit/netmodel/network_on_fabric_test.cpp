// Fabrics as a Network answers of them, explains and simulates.
#include <gtest/gtest.h>

#include "netmodel/explain.h"
#include "netmodel/simulate.h"
#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl::fabric {
namespace {

constexpr double of_bytes = 8e6;  // m: 80 ms on a link of 100 MB/s

Network on(const Outside& network, int nodes, int devices, Algorithm algorithm = Algorithm::automatic) {
  return Network::on_fabric(test::cpu_spec(nodes, devices), test::shape(network), {}, {}, algorithm).value();
}

// One switch and one device a node is what the Topology says, too. (Not of trees: there an inner rank's first chunk
// goes to two children, which share its NIC here.)
TEST(NetworkOnFabric, OneSwitchIsTheTopology) {
  const Network fabric = on(LeafSpine{8, 1, 1}, 8, 1);
  const Network topology(Topology::make(test::cpu_spec(8, 1)).value(), {}, {}, Algorithm::automatic);
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::all_to_all})
    for (const double bytes : {1e3, 1e6, 64e6}) {
      const CollectiveEstimate a = fabric.collective(collective, Bytes{bytes}, {1, 8, 1});
      const CollectiveEstimate b = topology.collective(collective, Bytes{bytes}, {1, 8, 1});
      EXPECT_NEAR(a.time.time / b.time.time, 1.0, 1e-6) << to_string(collective) << " " << bytes;
      EXPECT_EQ(a.algorithm, b.algorithm);
    }
  EXPECT_NEAR(fabric.point_to_point(Bytes{1e6}, false).time / topology.point_to_point(Bytes{1e6}, false).time, 1.0,
              1e-6);
  EXPECT_NE(fabric.links(), nullptr);
  EXPECT_EQ(topology.links(), nullptr);
}

// A ring of 8 at 92 MB/s, as NICs and links give: 7 rounds of m/8, each a NIC's 5 us twice. Two at once share every
// cable: twice as long for the bytes. Of half as many bytes beside it, both move half of a part in the time of a whole
// one, then the longer one the rest: 3/4 of twice.
TEST(NetworkOnFabric, SimulatesBesideTheClosedForm) {
  const Network ring = on(Torus{{8}}, 8, 1);
  const SimulatedExchange gather{Collective::all_gather, Bytes{of_bytes}, {1, 8, 1}, Algorithm::ring};
  const double latency = 7 * 10e-6, bytes = 7 * of_bytes / 8 / 92e6;
  const auto alone = ring.simulate({gather});
  ASSERT_TRUE(alone);
  EXPECT_NEAR(alone->front().closed_form.value(), latency + bytes, 1e-9);
  EXPECT_NEAR(alone->front().alone.value(), latency + bytes, 1e-9);
  EXPECT_EQ(alone->front().at_once, alone->front().alone);
  const auto twice = ring.simulate({gather, gather});
  EXPECT_NEAR(twice->at(1).at_once.value(), latency + 2 * bytes, 1e-9);
  SimulatedExchange half = gather;
  half.bytes = Bytes{of_bytes / 2};
  const auto uneven = ring.simulate({gather, half});
  EXPECT_NEAR(uneven->at(0).at_once.value(), latency + 1.5 * bytes, 1e-9);
  EXPECT_NEAR(uneven->at(1).at_once.value(), latency + bytes, 1e-9);
}

TEST(NetworkOnFabric, SaysWhatCannotBeSimulated) {
  const SimulatedExchange all{Collective::all_to_all, Bytes{of_bytes}, {1, 4, 1}, Algorithm::ring};
  EXPECT_FALSE(test::straight_network(4, 1, Algorithm::automatic).simulate({all}));
  SimulatedExchange many = all;
  many.placement = {1, 256, 1};
  EXPECT_EQ(on(Torus{{16, 16}}, 256, 1).simulate({many}).error().code, ErrorCode::infeasible);
  many.placement = {1, 1, 1};
  EXPECT_EQ(on(Torus{{16, 16}}, 256, 1).simulate({many})->front().alone, Seconds{0.0});
}

TEST(NetworkOnFabric, UsesPartOfItsRoom) {
  const Network torus = on(Torus{{4, 4}}, 16, 2);
  EXPECT_TRUE(torus.resized(5, 1));
  EXPECT_FALSE(torus.resized(17, 1));
  EXPECT_FALSE(torus.resized(4, 3));
}

TEST(NetworkOnFabric, WhatIfChangesItsLinks) {
  const Network torus = on(Torus{{4, 4}}, 16, 1);
  TopologySpec faster = torus.topology().spec();
  faster.nic_bandwidth *= 2;
  const Network other = torus.with_links(faster).value();
  const auto seconds = [](const Network& n) {
    return n.collective(Collective::all_reduce, Bytes{1e9}, {1, 16, 1}, Algorithm::ring).time.time;
  };
  EXPECT_NEAR(seconds(torus) / seconds(other), 2.0, 0.01);
}

// Messages between nodes were timed: 1 ms + bytes at 80 MB/s. Two leaves of two nodes, whose uplinks of 50 MB/s (46 of
// which are carried) a ring crosses once each way: each of its 6 rounds of m/4 takes a message, or as long as the
// uplink, whichever is longer. Short parts wait for hosts, long ones for the uplink; of neighbours under one leaf it is
// the message alone.
TEST(NetworkOnFabric, HostsAndLinksWhicheverIsSlower) {
  std::vector<PointToPointSample> messages;
  for (const double bytes : {1.0, 1e4, 1e5, 1e6, 1e7, 1e8})
    for (const bool both_ways : {false, true})
      messages.push_back({false, 1, Bytes{bytes}, Seconds{1e-3 + bytes / 80e6}, 0.0, both_ways});
  FabricSpec tree = test::shape(LeafSpine{2, 2, 1});
  tree.link = {BytesPerSecond{50e6}, Seconds{}, Duplex::full};
  const auto ring = [&](const std::vector<PointToPointSample>& known, double bytes, int nodes) {
    const Network network = Network::on_fabric(test::cpu_spec(4, 1), tree, known, {}, Algorithm::ring).value();
    return network.collective(Collective::all_reduce, Bytes{bytes}, {1, nodes, 1}, Algorithm::ring).time.time.value();
  };
  const auto near = [](double expected, double found) { EXPECT_NEAR(found / expected, 1.0, 0.01); };
  near(6 * (1e-3 + 1e4 / 80e6), ring(messages, 4e4, 4));
  near(6 * 2e6 / 46e6, ring(messages, of_bytes, 4));
  near(2 * (1e-3 + of_bytes / 2 / 80e6), ring(messages, of_bytes, 2));
  near(6 * 1e4 / 46e6, ring({}, 4e4, 4) - 6 * 10e-6);
}

// Samples still answer where they were taken.
TEST(NetworkOnFabric, SamplesComeFirst) {
  CollectiveSample sample;
  sample.algorithm = Algorithm::ring;
  sample.placement = {1, 4, 1};
  sample.bytes = Bytes{1e6};
  sample.time = Seconds{0.5};
  const Network network =
      Network::on_fabric(test::cpu_spec(16, 1), test::shape(Torus{{4, 4}}), {}, {sample}, Algorithm::ring).value();
  const Estimate estimate = network.collective(Collective::all_reduce, Bytes{1e6}, {1, 4, 1}).time;
  EXPECT_EQ(estimate.time, Seconds{0.5});
  EXPECT_EQ(estimate.provenance, Provenance::measured);
}

TEST(Explanation, NamesAlgorithmRouteAndBusiestLink) {
  const Network torus = on(Torus{{4, 4}}, 16, 1);
  const NetworkExplanation e = torus.explain(Collective::all_reduce, Bytes{64e6}, {1, 16, 1}, Algorithm::ring);
  EXPECT_EQ(e.why, "it was asked for");
  ASSERT_EQ(e.rounds.size(), 1U);
  EXPECT_EQ(e.rounds[0].times, 30);
  EXPECT_EQ(e.rounds[0].messages, 16);
  EXPECT_DOUBLE_EQ(e.rounds[0].message.value(), 4e6);
  EXPECT_NEAR(e.rounds[0].total().value(), e.by_formula.value(), 1e-9);
  EXPECT_EQ(e.rounds[0].route.front().substr(0, 4), "node");
  EXPECT_EQ(e.rounds[0].route.back().substr(e.rounds[0].route.back().size() - 8), "device 0");
  // All to all in a ring of 16: a router's cable carries more than a NIC.
  const NetworkExplanation a2a = on(Torus{{16}}, 16, 1).explain(Collective::all_to_all, Bytes{64e6}, {1, 16, 1});
  EXPECT_EQ(a2a.why, "it is what the library runs for this collective");
  EXPECT_EQ(a2a.rounds.at(0).busiest_link.substr(0, 6), "router");
  const Network plain = test::straight_network(4, 2, Algorithm::automatic);
  const NetworkExplanation f = plain.explain(Collective::all_reduce, Bytes{1e3}, {2, 4, 1});
  EXPECT_EQ(f.estimate.algorithm, Algorithm::recursive_doubling);
  EXPECT_EQ(f.distances.size(), 2U);
  EXPECT_TRUE(f.rounds.empty());
  EXPECT_EQ(f.candidates.size(), 8U);  // all but switches that add
}

// Devices of a node whose switch adds, on a fabric whose switches do not: between nodes both devices of each sum m/2 in
// trees, each half of it in one chunk of m/4. Into a tree's inner rank go two, and those of both devices: 4 m/4 over 92
// MB/s, then half as much to its root, and back: 3 m/92 MB/s and four hops of 10 us. NCCL counts on 15.9 us more for
// each, on 17.2 us more than 7 us to launch; with 2 us in the node, of which 19 ms stream meanwhile, that is the
// latency of which chunks wait for half.
TEST(Explanation, SaysWhereSwitchesAdd) {
  TopologySpec spec = test::cpu_spec(4, 2);
  spec.device_link.kind = LinkKind::nvswitch;
  const auto asked = [&] {
    return Network::on_fabric(spec, test::shape(LeafSpine{4, 1, 1}), {}, {})
        ->explain(Collective::all_reduce, Bytes{of_bytes}, {2, 4, 1}, Algorithm::in_network);
  };
  EXPECT_EQ(asked().why, "what was asked for needs switches that add");
  EXPECT_EQ(asked().estimate.algorithm, Algorithm::ring);
  spec.device_link.reduces = true;
  const NetworkExplanation e = asked();
  EXPECT_EQ(e.why, "it was asked for");
  EXPECT_EQ(e.estimate.algorithm, Algorithm::in_network);
  EXPECT_EQ(e.candidates.back().first, Algorithm::in_network);
  EXPECT_NEAR(e.estimate.time.time.value(), 24.2e-6 + 1.5 * (2e-6 + 4 * 25.9e-6) + 3 * of_bytes / 92e6, 1e-8);
}

}  // namespace
}  // namespace sibyl::fabric

// Insides of nodes: ways, rings and what devices share, by hand.
#include <gmock/gmock.h>

#include "netmodel/fabric/fabric.h"
#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl::fabric {
namespace {

using testing::ElementsAre;

// The hybrid cube mesh has six rings for V100, four links or six, and no direct link from 0 to 5: half
// by 1, half by 4.
TEST(InsideOfANode, HybridCubeMesh) {
  TopologySpec spec = test::cpu_spec(1, 8);
  const Node six = Node::make(spec, CubeMesh{6}).value(), four = Node::make(spec, CubeMesh{4}).value();
  EXPECT_EQ(six.rings(0, 8).size(), 6U);
  EXPECT_GE(four.rings(0, 8).size(), 2U);
  EXPECT_EQ(six.way(0, 5).size(), 4U);
  for (const Step& step : six.way(0, 5)) EXPECT_EQ(step.share, 0.5);
  spec.devices_per_node = 4;
  EXPECT_FALSE(Node::make(spec, CubeMesh{6}));
}

TEST(InsideOfANode, PcieTreeWithSockets) {
  TopologySpec spec = test::cpu_spec(1, 8);
  spec.nics_per_node = 2;
  PcieTree tree;
  tree.switches_per_socket = 2;
  tree.between_sockets.bandwidth = BytesPerSecond{0.5e9};
  FabricSpec shape = test::shape(Torus{{1}});
  shape.inside = tree;
  const Fabric node = Fabric::make(spec, shape).value();
  EXPECT_EQ(test::names(node, 0, 1).size(), 2U);  // one switch
  EXPECT_EQ(test::names(node, 0, 2).size(), 4U);  // their socket
  EXPECT_EQ(test::names(node, 0, 4).size(), 5U);  // both sockets
  // Four devices of 1 GB/s to the other socket at 0.5 GB/s in all; two under a switch share its 1 GB/s.
  std::vector<Flow> across;
  for (int i = 0; i < 4; ++i) across.push_back({i, i + 4, 1e9, 0.0});
  EXPECT_NEAR(test::last_end(node, across), 8.0, 1e-9);
  EXPECT_NEAR(test::last_end(node, {{0, 2, 1e9, 0.0}, {1, 3, 1e9, 0.0}}), 2.0, 1e-9);
  // Each socket's devices have its NIC.
  EXPECT_THAT(node.node().nics_of(0), ElementsAre(0));
  EXPECT_THAT(node.node().nics_of(7), ElementsAre(1));
}

// Four devices: two pairs with a link of 2 GB/s, each behind a bridge with a NIC, the bridges joined at 0.5 GB/s.
InnerLinks two_pairs() {
  const BytesPerSecond pair{2e9}, between{0.5e9};
  return {{{"device0", "device1", pair, {}, {}, Duplex::full, 1, "f:1"},
           {"device2", "device3", pair, {}, {}, Duplex::full, 1, "f:2"},
           {"device0", "left", {}, {}, {}, Duplex::full, 1, "f:3"},
           {"device1", "left", {}, {}, {}, Duplex::full, 1, "f:4"},
           {"device2", "right", {}, {}, {}, Duplex::full, 1, "f:5"},
           {"device3", "right", {}, {}, {}, Duplex::full, 1, "f:6"},
           {"left", "right", between, Seconds{3e-6}, {}, Duplex::full, 1, "f:7"},
           {"nic1", "right", {}, {}, {}, Duplex::full, 1, "f:8"},
           {"left", "nic0", {}, {}, {}, Duplex::full, 1, "f:9"}}};
}

TEST(InsideOfANode, LinkByLink) {
  TopologySpec spec = test::cpu_spec(2, 4);
  spec.nics_per_node = 2;
  FabricSpec shape = test::shape(FatTree{{4}, {}});
  shape.inside = two_pairs();
  const Fabric node = Fabric::make(spec, shape).value();
  EXPECT_THAT(test::names(node, 0, 1), ElementsAre("node 0 device 1"));
  EXPECT_THAT(test::names(node, 0, 2), ElementsAre("node 0 left", "node 0 right", "node 0 device 2"));
  // A device link's 1 us between devices; half of it to a bridge and from one, and the bridges' own 3 us.
  EXPECT_NEAR(node.latency(test::way(node, 0, 1)), 1e-6, 1e-12);
  EXPECT_NEAR(node.latency(test::way(node, 0, 2)), 0.5e-6 + 3e-6 + 0.5e-6, 1e-12);
  EXPECT_NEAR(test::last_end(node, {{0, 1, 2e9, 0.0}}), 1.0, 1e-9);
  EXPECT_NEAR(test::last_end(node, {{0, 2, 1e9, 0.0}, {1, 3, 1e9, 0.0}}), 4.0, 1e-9);
  EXPECT_THAT(node.node().nics_of(1), ElementsAre(0));
  EXPECT_THAT(node.node().nics_of(2), ElementsAre(1));
  EXPECT_THAT(test::names(node, 0, 6), ElementsAre("node 0 left", "node 0 NIC 0", "switch 0", "node 1 NIC 1",
                                                   "node 1 right", "node 1 device 2"));
}

// A triangle of devices: rings both ways; half duplex, both ways share a link; what another device passes on is slower
// than its own link by both.
TEST(InsideOfANode, LinksWithoutBridges) {
  const TopologySpec spec = test::cpu_spec(1, 3);
  InnerLinks triangle{{{"device0", "device1", {}, {}, {}, Duplex::full, 1, ""},
                       {"device1", "device2", {}, {}, {}, Duplex::full, 1, ""},
                       {"device2", "device0", {}, {}, {}, Duplex::half, 1, ""}}};
  EXPECT_EQ(Node::make(spec, triangle).value().rings(0, 3).size(), 2U);
  FabricSpec shape = test::shape(Torus{{1}});
  shape.inside = triangle;
  const Fabric node = Fabric::make(spec, shape).value();
  EXPECT_NEAR(test::last_end(node, {{0, 1, 1e9, 0.0}, {1, 0, 1e9, 0.0}}), 1.0, 1e-9);
  EXPECT_NEAR(test::last_end(node, {{0, 2, 1e9, 0.0}, {2, 0, 1e9, 0.0}}), 2.0, 1e-9);
  triangle.links.pop_back();
  shape.inside = triangle;
  EXPECT_EQ(test::names(Fabric::make(spec, shape).value(), 0, 2).size(), 2U);
}

TEST(InsideOfANode, SaysWhatIsWrongWithALink) {
  TopologySpec spec = test::cpu_spec(1, 4);
  spec.nics_per_node = 2;
  const auto error = [&](std::size_t link, auto change) {
    InnerLinks links = two_pairs();
    change(links.links[link]);
    const auto made = Node::make(spec, links);
    return made ? std::string("none") : made.error().where + made.error().message;
  };
  using Link = InnerLinks::Link;
  EXPECT_EQ(error(0, [](Link&) {}), "none");
  EXPECT_EQ(error(0, [](Link& l) { l.from = "device4"; }), "f:1there is no device 4: a node has 4");
  EXPECT_EQ(error(8, [](Link& l) { l.to = "nic2"; }), "f:9there is no NIC 2: a node has 2");
  EXPECT_EQ(error(1, [](Link& l) { l.to = l.from; }), "f:2a link from 'device2' to itself");
  EXPECT_EQ(error(7, [](Link& l) { l.to = "nic0"; }), "f:8a link joins two NICs");
  EXPECT_EQ(error(7, [](Link& l) { l.parallel = 2; }),
            "f:8a NIC's link is as fast as the NIC: it has no rate of its own");
  EXPECT_EQ(error(6, [](Link& l) { l.to = "nowhere"; }), "no way leads from device 0 to device 2 inside a node");
}

TEST(InsideOfANode, MeshRingAndPlanes) {
  const TopologySpec spec = test::cpu_spec(1, 4);
  EXPECT_EQ(Node::make(spec, Mesh{}).value().graph().edges().size(), 2U * (6 + 4));  // and the NIC's
  EXPECT_EQ(Node::make(spec, InnerRing{}).value().rings(0, 4).size(), 2U);           // both ways round
  const Node planes = Node::make(spec, NvSwitch{4}).value();
  EXPECT_EQ(planes.way(0, 1).size(), 8U);  // a quarter over each
  EXPECT_EQ(planes.rings(0, 4).size(), 1U);
}

}  // namespace
}  // namespace sibyl::fabric

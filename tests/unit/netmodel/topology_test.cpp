#include "netmodel/topology.h"

#include <gtest/gtest.h>

namespace sibyl {
namespace {

TopologySpec dgx() {
  TopologySpec spec;
  spec.nodes = 64;
  spec.devices_per_node = 8;
  spec.device_link = {LinkKind::nvswitch, BytesPerSecond{300e9}, Seconds{2e-6}};
  spec.nics_per_node = 4;
  spec.nic_bandwidth = BytesPerSecond{25e9};
  spec.nic_latency = Seconds{1.5e-6};
  spec.switch_latency = Seconds{0.2e-6};
  spec.levels = 3;
  spec.nodes_per_switch = 16;
  spec.oversubscription = 2.0;
  return spec;
}

TEST(Topology, PathsAddUpWhatTheyCross) {
  const Topology topology = Topology::make(dgx()).value();
  EXPECT_DOUBLE_EQ(topology.path(0).latency.value(), 2e-6);
  EXPECT_DOUBLE_EQ(topology.path(0).bandwidth.value(), 300e9);
  // Between nodes: two NICs, and 1, 3 and 5 switches.
  EXPECT_NEAR(topology.path(1).latency.value(), 2 * 1.5e-6 + 1 * 0.2e-6, 1e-12);
  EXPECT_NEAR(topology.path(2).latency.value(), 2 * 1.5e-6 + 3 * 0.2e-6, 1e-12);
  EXPECT_NEAR(topology.path(3).latency.value(), 2 * 1.5e-6 + 5 * 0.2e-6, 1e-12);
  // device, NIC, switch, NIC, device: four links.
  EXPECT_EQ(topology.path(1).links, 4);
  EXPECT_EQ(topology.path(3).links, 8);
  EXPECT_DOUBLE_EQ(topology.path(3).bandwidth.value(), 25e9);
}

// Two NICs and a switch would take 3.2 us, the link takes 10: a message of the node stays on its link.
TEST(Topology, MessagesOfANodeDoNotLeaveIt) {
  TopologySpec spec = dgx();
  spec.nics_per_node = 8;
  spec.device_link.latency = Seconds{10e-6};
  const Topology topology = Topology::make(spec).value();
  EXPECT_DOUBLE_EQ(topology.path(0).latency.value(), 10e-6);
  EXPECT_DOUBLE_EQ(topology.path(0).bandwidth.value(), 300e9);
  EXPECT_EQ(topology.path(0).links, 2);
}

TEST(Topology, GroupsSpanLevelsBySize) {
  const Topology topology = Topology::make(dgx()).value();
  EXPECT_EQ(topology.span(1), 0);
  EXPECT_EQ(topology.span(2), 1);
  EXPECT_EQ(topology.span(16), 1);
  EXPECT_EQ(topology.span(17), 2);
  EXPECT_EQ(topology.span(256), 2);
  EXPECT_EQ(topology.span(257), 3);
  EXPECT_EQ(topology.span(1 << 20), 3);
  EXPECT_EQ(topology.worst_path({8, 16, 1}).links, 4);
  EXPECT_EQ(topology.worst_path({8, 17, 1}).links, 6);
}

TEST(Topology, OversubscriptionNarrowsEveryLevelAboveTheFirst) {
  const Topology topology = Topology::make(dgx()).value();
  EXPECT_DOUBLE_EQ(topology.node_bandwidth(1).value(), 100e9);
  EXPECT_DOUBLE_EQ(topology.node_bandwidth(2).value(), 50e9);
  EXPECT_DOUBLE_EQ(topology.node_bandwidth(3).value(), 25e9);
}

TEST(Topology, APairInAMeshHasItsShareOfADevicesLinks) {
  TopologySpec spec = dgx();
  spec.device_link = {LinkKind::nvlink_mesh, BytesPerSecond{150e9}, Seconds{2e-6}};
  spec.devices_per_node = 4;
  EXPECT_DOUBLE_EQ(Topology::make(spec).value().path(0).bandwidth.value(), 50e9);  // three peers
}

TEST(Topology, CostsTheSameForManyNodes) {
  TopologySpec spec = dgx();
  const int few = Topology::make(spec).value().vertices();
  spec.nodes = 65'536;
  EXPECT_EQ(Topology::make(spec).value().vertices(), few);
}

TEST(Topology, ResizesAndRefusesNonsense) {
  const Topology topology = Topology::make(dgx()).value();
  EXPECT_EQ(topology.resized(512, 4).value().spec().devices_per_node, 4);
  EXPECT_EQ(topology.resized(512, 8).value().spec().nodes, 512);
  EXPECT_FALSE(topology.resized(0, 8).has_value());
  EXPECT_FALSE(topology.resized(4, 0).has_value());
  TopologySpec spec = dgx();
  spec.nic_bandwidth = BytesPerSecond{0.0};
  EXPECT_FALSE(Topology::make(spec).has_value());
  spec = dgx();
  spec.oversubscription = 0.5;
  EXPECT_FALSE(Topology::make(spec).has_value());
  spec = dgx();
  spec.switch_latency = Seconds{-1.0};
  EXPECT_FALSE(Topology::make(spec).has_value());
}

// A damaged file must not become a graph of a billion devices, nor a count that overflows.
TEST(Topology, RefusesMoreThanAnyMachineHas) {
  TopologySpec spec = dgx();
  spec.nodes = most_devices / 8;
  EXPECT_TRUE(Topology::make(spec).has_value());
  spec.nodes += 1;
  EXPECT_FALSE(Topology::make(spec).has_value());
  spec = dgx();
  spec.devices_per_node = 1'000'000'000;
  EXPECT_FALSE(Topology::make(spec).has_value());
  spec = dgx();
  spec.nics_per_node = 1'000'000'000;
  EXPECT_FALSE(Topology::make(spec).has_value());
  spec = dgx();
  spec.nic_latency = Seconds{1e300};
  EXPECT_FALSE(Topology::make(spec).has_value());
}

TEST(Topology, OnlySwitchesAdd) {
  TopologySpec spec = dgx();
  spec.device_link.reduces = true;
  spec.device_link.kind = LinkKind::nvswitch;
  EXPECT_TRUE(Topology::make(spec).has_value());
  for (const LinkKind kind : {LinkKind::nvlink_mesh, LinkKind::pcie, LinkKind::shared_memory}) {
    spec.device_link.kind = kind;
    EXPECT_FALSE(Topology::make(spec).has_value());
  }
}

// Nodes under a leaf, leaves under a switch above: 12 nodes fill 3 leaves of 4, 32 two switches of 4 leaves; the top
// one has room for any; 10 fill none evenly.
TEST(Topology, NodesLieInDimensions) {
  TopologySpec spec = dgx();
  spec.levels = 3;
  spec.nodes_per_switch = 4;
  const Topology topology = Topology::make(spec).value();
  EXPECT_EQ(topology.extents(3), (std::vector<int>{3}));
  EXPECT_EQ(topology.extents(12), (std::vector<int>{4, 3}));
  EXPECT_EQ(topology.extents(32), (std::vector<int>{4, 4, 2}));
  EXPECT_EQ(topology.extents(256), (std::vector<int>{4, 4, 16}));
  EXPECT_EQ(topology.extents(10), (std::vector<int>{10}));
}

TEST(Topology, NamesOfLinksReadBack) {
  for (const LinkKind kind : {LinkKind::nvswitch, LinkKind::nvlink_mesh, LinkKind::pcie, LinkKind::shared_memory})
    EXPECT_EQ(parse_link_kind(to_string(kind)).value(), kind);
  EXPECT_FALSE(parse_link_kind("string and tin cans").has_value());
}

}  // namespace
}  // namespace sibyl

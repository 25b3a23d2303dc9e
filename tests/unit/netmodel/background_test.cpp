// Links and NICs of which others use a share: what is left is slower, and nothing else changes.
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl {
namespace {

constexpr GroupPlacement in_a_node{4, 1, 1}, over_nodes{1, 4, 1};

TopologySpec shared_with_others(double of_nics, double of_devices) {
  TopologySpec spec = test::cpu_spec(4, 4);
  spec.nic_background = of_nics;
  spec.device_link.background = of_devices;
  return spec;
}

Network without_samples(const TopologySpec& spec) { return {Topology::make(spec).value(), {}, {}, Algorithm::ring}; }

Network on_leaf(const TopologySpec& spec, const fabric::Inside& node = fabric::OneHub{}) {
  fabric::FabricSpec shape = test::shape(fabric::LeafSpine{4, 1, 1});
  shape.inside = node;
  return Network::on_fabric(spec, shape, {}, {}, Algorithm::ring).value();
}

double gathering(const Network& network, GroupPlacement placement, double bytes = 8e6) {
  return network.collective(Collective::all_gather, Bytes{bytes}, placement).time.time.value();
}

// What bytes take; latencies stay.
void expect_slower(const Network& now, const Network& before, GroupPlacement placement, double factor) {
  EXPECT_DOUBLE_EQ(gathering(now, placement, 0), gathering(before, placement, 0));
  const double stream = gathering(before, placement) - gathering(before, placement, 0);
  EXPECT_NEAR((gathering(now, placement) - gathering(now, placement, 0)) / stream, factor, 1e-9);
}

// A quarter of a NIC is left: four times as long; half of a device's links: twice.
TEST(Background, LeavesTheRest) {
  expect_slower(without_samples(shared_with_others(0.75, 0)), without_samples(shared_with_others(0, 0)), over_nodes,
                4.0);
  expect_slower(without_samples(shared_with_others(0, 0.5)), without_samples(shared_with_others(0, 0)), in_a_node, 2.0);
  EXPECT_DOUBLE_EQ(gathering(without_samples(shared_with_others(0.75, 0)), in_a_node),
                   gathering(without_samples(shared_with_others(0, 0)), in_a_node));
  EXPECT_DOUBLE_EQ(gathering(without_samples(shared_with_others(0, 0.5)), over_nodes),
                   gathering(without_samples(shared_with_others(0, 0)), over_nodes));
  const Topology half = Topology::make(shared_with_others(0.5, 0)).value();
  EXPECT_DOUBLE_EQ(half.path(1).bandwidth.value(), 50e6);
  EXPECT_DOUBLE_EQ(half.node_bandwidth(1).value(), 50e6);
}

TEST(Background, IsTheSameOnFabrics) {
  expect_slower(on_leaf(shared_with_others(0.75, 0)), on_leaf(shared_with_others(0, 0)), over_nodes, 4.0);
  EXPECT_DOUBLE_EQ(gathering(on_leaf(shared_with_others(0.75, 0)), in_a_node),
                   gathering(on_leaf(shared_with_others(0, 0)), in_a_node));
  for (const fabric::Inside& node : {fabric::Inside{fabric::OneHub{}}, fabric::Inside{fabric::Mesh{}}}) {
    expect_slower(on_leaf(shared_with_others(0, 0.5), node), on_leaf(shared_with_others(0, 0), node), in_a_node, 2.0);
    EXPECT_DOUBLE_EQ(gathering(on_leaf(shared_with_others(0, 0.5), node), over_nodes),
                     gathering(on_leaf(shared_with_others(0, 0), node), over_nodes));
  }
}

// Measured messages of 10 us + bytes / (100 MB/s) between nodes: what the shortest takes stays, the rest takes four
// times as long. Those inside a node stay as they were measured.
TEST(Background, CarriesWhatWasMeasured) {
  const Network quiet = test::straight_network(4, 4, Algorithm::ring);
  const Network loaded = quiet.with_links(shared_with_others(0.75, 0)).value();
  const Bytes message{1 << 20};
  EXPECT_NEAR(loaded.point_to_point(message, false).time.value(), 10e-6 + 4 * message.value() / 100e6, 1e-6);
  EXPECT_NE(loaded.point_to_point(message, false).provenance, Provenance::measured);
  const Estimate before = quiet.point_to_point(message, true), now = loaded.point_to_point(message, true);
  EXPECT_EQ(now.time, before.time);
  EXPECT_EQ(now.relative_error, before.relative_error);
  EXPECT_EQ(now.provenance, before.provenance);
  EXPECT_DOUBLE_EQ(gathering(loaded, in_a_node), gathering(quiet, in_a_node));
}

// Of a fabric's links a quarter is left, over which a collective takes as long as if the fabric had been made so.
TEST(Background, OfAFabricIsChanged) {
  const TopologySpec same = test::cpu_spec(4, 4);
  const auto without = [](double used) {
    fabric::FabricSpec shape = test::shape(fabric::LeafSpine{4, 1, 1});
    shape.background = used;
    return Network::on_fabric(test::cpu_spec(4, 4), shape, {}, {}, Algorithm::ring).value();
  };
  const Network quiet = without(0), changed = quiet.with_links(same, 0.75).value();
  EXPECT_GT(gathering(changed, over_nodes), 1.5 * gathering(quiet, over_nodes));
  EXPECT_DOUBLE_EQ(gathering(changed, over_nodes), gathering(without(0.75), over_nodes));
  EXPECT_DOUBLE_EQ(gathering(changed, in_a_node), gathering(quiet, in_a_node));
  EXPECT_DOUBLE_EQ(gathering(changed.with_links(same, 0.0).value(), over_nodes), gathering(quiet, over_nodes));
  EXPECT_DOUBLE_EQ(gathering(changed.with_links(same).value(), over_nodes), gathering(changed, over_nodes));
  EXPECT_FALSE(quiet.with_links(same, 1.0).has_value());
  EXPECT_FALSE(test::straight_network(4, 4, Algorithm::ring).with_links(same, 0.5).has_value());
}

// Of the links a quarter is left: what a measured message takes beyond the shortest takes four times as long; and half
// of that where half is left instead. Where others use as much of the NICs, too, that is all one.
TEST(Background, OfAFabricCarriesWhatWasMeasured) {
  const Bytes message{1 << 20};
  const TopologySpec same = test::cpu_spec(4, 4);
  const Network quiet =
      Network::on_fabric(same, test::shape(fabric::LeafSpine{4, 1, 1}), test::straight_lines(), {}, Algorithm::ring)
          .value();
  const Network quarter = quiet.with_links(same, 0.75).value(), half = quarter.with_links(same, 0.5).value();
  EXPECT_NEAR(quarter.point_to_point(message, false).time.value(), 10e-6 + 4 * message.value() / 100e6, 1e-6);
  EXPECT_NEAR(half.point_to_point(message, false).time.value(), 10e-6 + 2 * message.value() / 100e6, 1e-6);
  const Network nics = quarter.with_links(shared_with_others(0.75, 0)).value();
  EXPECT_NEAR(nics.point_to_point(message, false).time.value(), 10e-6 + 4 * message.value() / 100e6, 1e-6);
  EXPECT_NE(quarter.point_to_point(message, false).provenance, Provenance::measured);
  EXPECT_EQ(quarter.point_to_point(message, true).time, quiet.point_to_point(message, true).time);
  EXPECT_EQ(quarter.point_to_point(message, true).provenance, quiet.point_to_point(message, true).provenance);
}

// Four groups in each of four nodes have a NIC each, and nobody else uses it or the links behind it.
TEST(Background, IsNotThereForOneAlone) {
  const GroupPlacement alone = over_nodes, crowded{1, 4, 4};
  const Network quiet = on_leaf(shared_with_others(0, 0)), shared = on_leaf(shared_with_others(0.75, 0.5));
  EXPECT_GT(gathering(quiet, crowded), gathering(quiet, alone));
  EXPECT_DOUBLE_EQ(gathering(quiet.uncontended().value(), crowded), gathering(quiet, alone));
  EXPECT_DOUBLE_EQ(gathering(shared.uncontended().value(), crowded), gathering(quiet, alone));
  EXPECT_DOUBLE_EQ(gathering(shared.uncontended().value(), in_a_node), gathering(quiet, in_a_node));
  fabric::FabricSpec used = test::shape(fabric::LeafSpine{4, 1, 1});
  used.background = 0.5;
  const Network links = Network::on_fabric(shared_with_others(0, 0), used, {}, {}, Algorithm::ring).value();
  EXPECT_GT(gathering(links, alone), gathering(quiet, alone));
  EXPECT_DOUBLE_EQ(gathering(links.uncontended().value(), alone), gathering(quiet, alone));
  const Bytes message{1e6};
  EXPECT_EQ(quiet.uncontended().value().point_to_point(message, false, 4).time,
            quiet.point_to_point(message, false, 1).time);
}

TEST(Background, IsAShareBelowOne) {
  for (const double share : {-0.1, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(Topology::make(shared_with_others(share, 0)).has_value()) << share;
    EXPECT_FALSE(Topology::make(shared_with_others(0, share)).has_value()) << share;
  }
  EXPECT_TRUE(Topology::make(shared_with_others(0.99, 0.99)).has_value());
  fabric::FabricSpec torus = test::shape(fabric::Torus{{4}});
  torus.direct = true;
  TopologySpec spec = test::cpu_spec(4, 1);
  EXPECT_TRUE(fabric::Fabric::make(spec, torus).has_value());
  spec.nic_background = 0.5;
  EXPECT_FALSE(fabric::Fabric::make(spec, torus).has_value());
}

}  // namespace
}  // namespace sibyl

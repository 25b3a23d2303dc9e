// NCCL's protocols: what each costs, which is taken at which size, and that only what nobody measured depends on them.
#include <gtest/gtest.h>

#include "netmodel/collective/protocol.h"
#include "netmodel/explain.h"
#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl {
namespace {

using collective::cost_of;
using collective::ProtocolCost;

// Links give 0.80 of what they promise, adapters 0.92: 1 us + bytes / (1 GB/s) inside a node, 10 us + bytes / (100
// MB/s) between.
TopologySpec gpu_spec(int nodes, int devices_per_node) {
  TopologySpec spec = test::cpu_spec(nodes, devices_per_node);
  spec.device_link = {LinkKind::nvswitch, BytesPerSecond{1.25e9}, Seconds{1e-6}};
  spec.nic_bandwidth = BytesPerSecond{100e6 / 0.92};
  return spec;
}

Network gpus(int nodes, int devices_per_node, std::vector<CollectiveSample> samples = {}) {
  return {Topology::make(gpu_spec(nodes, devices_per_node)).value(), {}, std::move(samples)};
}

NetworkExplanation gathered(const Network& network, double bytes, GroupPlacement placement) {
  return network.explain(Collective::all_gather, Bytes{bytes}, placement);
}

double microseconds(const Network& network, double bytes, GroupPlacement placement) {
  return gathered(network, bytes, placement).estimate.time.time.value() * 1e6;
}

void expect_cost(const ProtocolCost& cost, double share, double launch, double inside, double across) {
  EXPECT_NEAR(cost.share, share, 1e-12);
  EXPECT_NEAR(cost.launch * 1e6, launch, 1e-9);
  EXPECT_NEAR(cost.inside * 1e6, inside, 1e-9);
  EXPECT_NEAR(cost.across * 1e6, across, 1e-9);
}

// NCCL's tables, each less LL's: a ring starts in 6.6, 14.0 and 8.4 us, and hops in 0.6, 1.9 and 3.4 us over
// NVLink, 1.0, - and 5.7 us over PCIe, 2.7, 4.0 and 14.0 us over the network; a tree in 6.8, 14.0 and 8.4, 0.6, 1.25
// and 4.0, and 5.0, 8.5 and 14.0.
TEST(Protocols, CostWhatNcclCountsOn) {
  constexpr GroupPlacement node{8, 1, 1}, nodes{8, 4, 1}, single{1, 4, 1};
  const auto of = [](Protocol protocol, Algorithm algorithm, GroupPlacement placement,
                     LinkKind link = LinkKind::nvswitch) {
    return cost_of(protocol, Collective::all_reduce, algorithm, link, placement);
  };
  expect_cost(of(Protocol::ll, Algorithm::ring, nodes), 0.5, 0, 0, 0);
  expect_cost(of(Protocol::ll128, Algorithm::ring, nodes), 0.9375, 7.4, 1.3, 1.3);
  expect_cost(of(Protocol::simple, Algorithm::ring, nodes), 1.0, 1.8, 2.8, 11.3);
  expect_cost(of(Protocol::simple, Algorithm::ring, nodes, LinkKind::pcie), 1.0, 1.8, 4.7, 11.3);
  expect_cost(of(Protocol::ll, Algorithm::tree, nodes), 1 / 3.8, 0, 0, 0);
  expect_cost(of(Protocol::ll128, Algorithm::tree, nodes), 0.9375, 7.2, 0.65, 3.5);
  expect_cost(of(Protocol::ll128, Algorithm::tree, node), 7.0 / 9.0, 7.2, 0.65, 3.5);
  expect_cost(of(Protocol::simple, Algorithm::tree, nodes), 1.0, 1.6, 3.4, 9.0);
  // One rank on a node: a ring's hop between nodes is a tree's.
  expect_cost(of(Protocol::simple, Algorithm::ring, single), 1.0, 1.8, 2.8, 9.0);
  // 25 us in all in a node: 6.6 us and two hops of 0.6 us are counted already.
  expect_cost(of(Protocol::simple, Algorithm::in_network, node), 1.0, 17.2, 0.0, 15.9);
  // A broadcast is a ring of NCCL's, whatever it is here.
  expect_cost(cost_of(Protocol::ll, Collective::broadcast, Algorithm::tree, LinkKind::nvswitch, node), 0.5, 0, 0, 0);
}

TEST(Protocols, AreThoseOfNccl) {
  const auto count = [](Collective collective, Algorithm algorithm, LinkKind link) {
    return collective::protocols_of(collective, algorithm, link).size();
  };
  EXPECT_EQ(count(Collective::all_reduce, Algorithm::ring, LinkKind::nvswitch), 3U);
  EXPECT_EQ(count(Collective::all_reduce, Algorithm::ring, LinkKind::pcie), 2U);  // stores of 128 bytes arrive in parts
  EXPECT_EQ(count(Collective::all_reduce, Algorithm::in_network, LinkKind::nvswitch), 1U);
  EXPECT_EQ(count(Collective::all_reduce, Algorithm::rabenseifner, LinkKind::nvswitch), 0U);
  EXPECT_EQ(count(Collective::all_to_all, Algorithm::ring, LinkKind::nvswitch), 0U);
  EXPECT_EQ(count(Collective::all_reduce, Algorithm::ring, LinkKind::shared_memory), 0U);
}

// All-gathers of 8 devices, 7 hops of m/8 after 7 us to launch. 8 kB: LL 7 + 7 (1 + 2) = 28 us (LL128 38, Simple 42).
// 64 kB: LL128 14.4 + 7 (2.3 + 8 16/15) = 90.23 us (LL 126, Simple 91.4). 8 MB: Simple 8.8 + 7 (3.8 + 1000) = 7035.4 us
// (LL128 7497).
TEST(Protocols, AreChosenBySize) {
  const Network network = gpus(1, 8);
  constexpr GroupPlacement node{8, 1, 1};
  EXPECT_NEAR(microseconds(network, 8e3, node), 28.0, 1e-6);
  EXPECT_NEAR(microseconds(network, 64e3, node), 14.4 + 7 * (2.3 + 8.0 * 16 / 15), 1e-6);
  EXPECT_NEAR(microseconds(network, 8e6, node), 7035.4, 1e-6);
  EXPECT_EQ(gathered(network, 8e3, node).protocol, Protocol::ll);
  EXPECT_EQ(gathered(network, 64e3, node).protocol, Protocol::ll128);
  EXPECT_EQ(gathered(network, 8e6, node).protocol, Protocol::simple);
  const NetworkExplanation e = gathered(network, 64e3, node);
  ASSERT_EQ(e.protocols.size(), 3U);
  EXPECT_NEAR(e.protocols[0].second.value() * 1e6, 126.0, 1e-6);
  EXPECT_NEAR(e.protocols[2].second.value() * 1e6, 91.4, 1e-6);
  EXPECT_NEAR(e.launch.value() * 1e6, 14.4, 1e-9);
}

// Half of 8 hops cross nodes: 7 (1/2 (1 + 10) + m/8 b), and in Simple 1.8 us and 7 (2.8 + 11.3)/2 us more.
TEST(Protocols, HopsBetweenNodesHaveTheirOwn) {
  const Network network = gpus(4, 2);
  const GroupPlacement all{2, 4, 1};
  EXPECT_NEAR(microseconds(network.speaking(Protocol::ll), 8e3, all), 7 + 7 * (5.5 + 20), 1e-6);
  EXPECT_NEAR(microseconds(network.speaking(Protocol::simple), 8e3, all), 7 + 1.8 + 7 * (5.5 + 7.05 + 10), 1e-6);
}

TEST(Protocols, OnesThatAreAskedForAreSpoken) {
  const Network network = gpus(1, 8);
  constexpr GroupPlacement node{8, 1, 1};
  EXPECT_NEAR(microseconds(network.speaking(Protocol::ll), 8e6, node), 7 + 7 * 2001.0, 1e-6);
  EXPECT_EQ(gathered(network.speaking(Protocol::ll), 8e6, node).protocol, Protocol::ll);
  EXPECT_NEAR(microseconds(network.speaking(Protocol::ll).resized(1, 4).value(), 8e6, {4, 1, 1}), 7 + 3 * 4001.0, 1e-6);
  // What NCCL does not know is not spoken: of switches that add there is only Simple.
  TopologySpec spec = gpu_spec(1, 8);
  spec.device_link.reduces = true;
  const Network adding(Topology::make(spec).value(), {}, {}, Algorithm::in_network);
  const auto seconds = [&](const Network& on) {
    return on.collective(Collective::all_reduce, Bytes{8e6}, node).time.time.value();
  };
  EXPECT_DOUBLE_EQ(seconds(adding.speaking(Protocol::ll)), seconds(adding));
}

// The links of a fabric say the same as one switch does.
TEST(Protocols, AreSpokenOnFabrics) {
  for (const GroupPlacement& placement : {GroupPlacement{1, 4, 1}, GroupPlacement{2, 4, 1}})
    for (const double bytes : {8e3, 64e3, 8e6}) {
      const Network links = Network::on_fabric(gpu_spec(4, 2), test::shape(fabric::LeafSpine{4, 1, 1}), {}, {}).value();
      const NetworkExplanation e = gathered(links, bytes, placement);
      const NetworkExplanation f = gathered(gpus(4, 2), bytes, placement);
      EXPECT_NEAR(e.estimate.time.time / f.estimate.time.time, 1.0, 1e-9) << bytes;
      EXPECT_EQ(e.protocol, f.protocol);
      ASSERT_EQ(e.rounds.size(), 1U);
      EXPECT_NEAR((e.rounds[0].total() + e.launch) / e.by_formula, 1.0, 1e-9);
    }
}

// A measured all-gather is the library's choice, LL128. In LL it takes 126 us where that takes 90.23 us.
TEST(Protocols, CarrySamplesByTheirRatio) {
  constexpr GroupPlacement node{8, 1, 1};
  const Network network =
      gpus(1, 8, {{Collective::all_gather, Algorithm::automatic, node, Bytes{64e3}, Seconds{1e-3}, 0.0, {}}});
  EXPECT_DOUBLE_EQ(microseconds(network, 64e3, node), 1000.0);
  EXPECT_EQ(gathered(network, 64e3, node).estimate.time.provenance, Provenance::measured);
  const NetworkExplanation e = gathered(network.speaking(Protocol::ll), 64e3, node);
  EXPECT_NEAR(e.estimate.time.time.value() * 1e6, 1000 * 126.0 / (14.4 + 7 * (2.3 + 8.0 * 16 / 15)), 1e-6);
  EXPECT_EQ(e.estimate.time.provenance, Provenance::interpolated);
  EXPECT_GT(e.estimate.time.relative_error, 0.09);
}

// Measured messages hold their protocol; ranks on CPUs have none.
TEST(Protocols, AreNotForWhatWasMeasured) {
  const Network measured(Topology::make(gpu_spec(1, 8)).value(), test::straight_lines(), {});
  const Network cpus = test::straight_network(1, 8, Algorithm::automatic);
  constexpr GroupPlacement node{8, 1, 1};
  for (const Network& network : {measured, cpus}) {
    EXPECT_FALSE(gathered(network, 64e3, node).protocol);
    EXPECT_DOUBLE_EQ(microseconds(network.speaking(Protocol::ll), 64e3, node), microseconds(network, 64e3, node));
  }
}

TEST(Protocols, NamesReadBack) {
  for (const Protocol protocol : {Protocol::automatic, Protocol::ll, Protocol::ll128, Protocol::simple})
    EXPECT_EQ(parse_protocol(to_string(protocol)).value(), protocol);
  EXPECT_FALSE(parse_protocol("LL256").has_value());
}

}  // namespace
}  // namespace sibyl

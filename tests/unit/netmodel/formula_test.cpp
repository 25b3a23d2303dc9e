// Times derived by hand for m = 4e6 bytes on the machine of machine.h: a = 10 us, b = 10 ns/B between nodes, a' = 1 us,
// b' = 1 ns/B inside.
#include <gtest/gtest.h>

#include "tests/unit/netmodel/machine.h"

namespace sibyl {
namespace {

constexpr double m = 4e6;

double time_of(Algorithm algorithm, GroupPlacement placement, Collective collective = Collective::all_reduce) {
  const Network network = test::straight_network(placement.nodes, placement.ranks_per_node, algorithm);
  const CollectiveEstimate estimate = network.collective(collective, Bytes{m}, placement);
  EXPECT_EQ(estimate.time.provenance, Provenance::estimated);
  return estimate.time.time.value();
}

#define EXPECT_MS(expression, milliseconds) EXPECT_NEAR(expression, (milliseconds)*1e-3, (milliseconds)*1e-8)

// 2 (p - 1) (a + m/p b)
TEST(RingTime, BetweenNodes) {
  EXPECT_MS(time_of(Algorithm::ring, {1, 2, 1}), 2 * (0.010 + 20.0));
  EXPECT_MS(time_of(Algorithm::ring, {1, 3, 1}), 4 * (0.010 + 40.0 / 3));
  EXPECT_MS(time_of(Algorithm::ring, {1, 4, 1}), 6 * (0.010 + 10.0));
  EXPECT_MS(time_of(Algorithm::ring, {1, 8, 1}), 14 * (0.010 + 5.0));
}

// Half of an all-reduce each.
TEST(RingTime, HalvesOfAnAllReduce) {
  EXPECT_MS(time_of(Algorithm::ring, {1, 4, 1}, Collective::reduce_scatter), 3 * 10.010);
  EXPECT_MS(time_of(Algorithm::ring, {1, 4, 1}, Collective::all_gather), 3 * 10.010);
}

// Two of the four links of the ring are inside nodes: the mean latency is (2 * 1 + 2 * 10) / 4 = 5.5 us, and bytes go
// at the pace of the links between nodes, each crossed once per direction.
TEST(RingTime, CrossesEachNodeOnce) { EXPECT_MS(time_of(Algorithm::ring, {2, 2, 1}), 6 * (0.0055 + 10.0)); }

// Two groups share the NIC: b doubles, the latency does not.
TEST(RingTime, GroupsShareTheNic) { EXPECT_MS(time_of(Algorithm::ring, {1, 4, 2}), 6 * (0.010 + 20.0)); }

// Behind a switch a rank that sends half of a part each way sends no less: two messages of m/8 share its NIC.
TEST(BidirectionalRingTime, BehindASwitchIsARing) {
  EXPECT_MS(time_of(Algorithm::bidirectional_ring, {1, 4, 1}), 6 * (0.010 + 2 * 5.0));
  EXPECT_MS(time_of(Algorithm::bidirectional_ring, {2, 2, 1}), 6 * (0.0055 + 10.0));
  EXPECT_MS(time_of(Algorithm::bidirectional_ring, {1, 4, 1}, Collective::all_gather), 3 * 10.010);
  EXPECT_MS(time_of(Algorithm::bidirectional_ring, {1, 4, 2}, Collective::reduce_scatter), 3 * 20.010);
}

// One part of m/4, then two; of three ranks one part twice. Of two nodes of two: one part to the next rank, which is on
// the other node for one of the two; then two parts to the other node, by both ranks of a node over one NIC.
TEST(BruckTime, AllGather) {
  EXPECT_MS(time_of(Algorithm::bruck, {1, 4, 1}, Collective::all_gather), 10.010 + 20.010);
  EXPECT_MS(time_of(Algorithm::bruck, {1, 3, 1}, Collective::all_gather), 2 * (0.010 + 40.0 / 3));
  EXPECT_MS(time_of(Algorithm::bruck, {4, 1, 1}, Collective::all_gather), 1.001 + 2.001);
  EXPECT_MS(time_of(Algorithm::bruck, {2, 2, 1}, Collective::all_gather), 10.010 + 40.010);
}

// Of four ranks two parts of m/4 in each round: the ways 1 and 3 have the first bit, 2 and 3 the second. Of three ranks
// one each; of five the ways 1 and 3, then 2 and 3, then 4.
TEST(BruckTime, AllToAll) {
  EXPECT_MS(time_of(Algorithm::bruck, {1, 4, 1}, Collective::all_to_all), 2 * 20.010);
  EXPECT_MS(time_of(Algorithm::bruck, {1, 3, 1}, Collective::all_to_all), 2 * (0.010 + 40.0 / 3));
  EXPECT_MS(time_of(Algorithm::bruck, {1, 5, 1}, Collective::all_to_all), 2 * 16.010 + 8.010);
  EXPECT_MS(time_of(Algorithm::bruck, {2, 2, 1}, Collective::all_to_all), 20.010 + 40.010);
}

// log2 p (a + m b); of 3 ranks two fold first and unfold last: 3 messages of m.
TEST(RecursiveDoublingTime, BetweenNodes) {
  EXPECT_MS(time_of(Algorithm::recursive_doubling, {1, 2, 1}), 40.010);
  EXPECT_MS(time_of(Algorithm::recursive_doubling, {1, 3, 1}), 3 * 40.010);
  EXPECT_MS(time_of(Algorithm::recursive_doubling, {1, 4, 1}), 2 * 40.010);
  EXPECT_MS(time_of(Algorithm::recursive_doubling, {1, 8, 1}), 3 * 40.010);
}

// One round inside the node (1 us + 4 ms), one between nodes with both ranks of a node at once (10 us + 2 * 40 ms).
TEST(RecursiveDoublingTime, RanksOfANodeShareTheNic) {
  EXPECT_MS(time_of(Algorithm::recursive_doubling, {2, 2, 1}), 4.001 + 80.010);
}

// 2 (log2 p a + (p - 1)/p m b)
TEST(RabenseifnerTime, BetweenNodes) {
  EXPECT_MS(time_of(Algorithm::rabenseifner, {1, 2, 1}), 2 * (0.010 + 20.0));
  EXPECT_MS(time_of(Algorithm::rabenseifner, {1, 3, 1}), 2 * 40.010 + 2 * 20.010);
  EXPECT_MS(time_of(Algorithm::rabenseifner, {1, 4, 1}), 2 * (0.020 + 30.0));
  EXPECT_MS(time_of(Algorithm::rabenseifner, {1, 8, 1}), 2 * (0.030 + 35.0));
}

// Half the vector inside the node (1 us + 2 ms), a quarter between nodes by both ranks (10 us + 2 * 10 ms); twice.
TEST(RabenseifnerTime, LongMessagesStayInside) {
  EXPECT_MS(time_of(Algorithm::rabenseifner, {2, 2, 1}), 2 * (2.001 + 20.010));
}

// Two ways, each: levels * (a + c b) for the first chunk of c = 60 KiB (0.6144 ms), then (m - c) b; of two ranks
// (m/2 - c) b.
TEST(TreeTime, BetweenNodes) {
  const double chunk = 0.6144, rest = 40.0 - chunk;
  EXPECT_MS(time_of(Algorithm::tree, {1, 2, 1}), 2 * (0.010 + 20.0));
  EXPECT_MS(time_of(Algorithm::tree, {1, 3, 1}), 2 * (2 * (0.010 + chunk) + rest));
  EXPECT_MS(time_of(Algorithm::tree, {1, 4, 1}), 2 * (2 * (0.010 + chunk) + rest));
  EXPECT_MS(time_of(Algorithm::tree, {1, 8, 1}), 2 * (3 * (0.010 + chunk) + rest));
}

// GPU libraries wait for each chunk at each hop. Four nodes are two levels, 2 * 2 * 10 us of latency. 10 B take
// 2 * 3 * 50 ns beside: 2 sqrt(40 us * 0.3 us) = 6.9282 us of waiting. 4 MB take longer than would count: 20 us, half
// of the latency. Beside it 7 us of launch, and the times of TreeTime.BetweenNodes with all of a tree's 2 MB in one
// chunk.
TEST(TreeTime, OfGpusWaitsForChunks) {
  TopologySpec spec = test::cpu_spec(4, 1);
  spec.device_link.kind = LinkKind::nvswitch;
  const Network network(Topology::make(spec).value(), test::straight_lines(), {}, Algorithm::tree);
  const auto time = [&](double bytes) {
    return network.collective(Collective::all_reduce, Bytes{bytes}, {1, 4, 1}).time.time.value();
  };
  EXPECT_NEAR(time(10), 7e-6 + 40.3e-6 + 6.9282e-6, 1e-10);
  EXPECT_MS(time(m), 0.007 + 2 * (2 * (0.010 + 20.0) + 20.0) + 0.020);
}

// A node of two devices and eight NICs: a rank alone has four of them.
TEST(RingTime, SpreadsOverTheNicsOfADevice) {
  TopologySpec spec = test::cpu_spec(2, 2);
  spec.nics_per_node = 8;
  const Network network(Topology::make(spec).value(), test::straight_lines(), {}, Algorithm::ring);
  EXPECT_MS(network.collective(Collective::all_reduce, Bytes{m}, {1, 2, 1}).time.time.value(), 2 * (0.010 + 20.0 / 4));
}

// One tree, one way; an inner rank sends each byte to two children, so 2 m - c follow the first chunk.
TEST(TreeTime, Broadcast) {
  const double chunk = 0.6144;
  EXPECT_MS(time_of(Algorithm::tree, {1, 4, 1}, Collective::broadcast), 2 * (0.010 + chunk) + (80.0 - chunk));
  EXPECT_MS(time_of(Algorithm::tree, {1, 2, 1}, Collective::broadcast), 40.010);  // nobody has two children
}

// Reduce-scatter and all-gather in the node: 2 (1 us + m/2 b') = 4.002 ms. Between: both ranks all-reduce m/2 at once
// over one NIC: 2 (10 us + m/4 * 2 b) = 40.020 ms.
TEST(HierarchicalTime, InsideThenBetween) { EXPECT_MS(time_of(Algorithm::hierarchical, {2, 2, 1}), 4.002 + 40.020); }

// Two devices a node, two nodes a leaf, two leaves: reduce-scatter and all-gather in the node, 2 (1 us + m/2 b')
// = 4.002 ms; among two nodes both devices' m/4 at once over one NIC, 2 (10 us + 2 * 10 ms); among two leaves m/8 each,
// of which both of a node and an oversubscription of 3 make 6, 2 (10 us + 6 * 5 ms).
TEST(MultiDimensionalTime, NodeLeafAndLeaves) {
  TopologySpec spec = test::cpu_spec(4, 2);
  spec.levels = 2;
  spec.nodes_per_switch = 2;
  spec.oversubscription = 3;
  const Network network(Topology::make(spec).value(), test::straight_lines(), {}, Algorithm::multi_dimensional);
  const auto time = [&](Collective collective, GroupPlacement placement) {
    return network.collective(collective, Bytes{m}, placement).time.time.value();
  };
  EXPECT_MS(time(Collective::all_reduce, {2, 4, 1}), 4.002 + 2 * 20.010 + 2 * 30.010);
  EXPECT_MS(time(Collective::all_gather, {2, 4, 1}), 2.001 + 20.010 + 30.010);
  // Three nodes fill no switches evenly: one dimension of 3, over the top, m/6 each: 4 (10 us + 2 * 20/3 ms).
  EXPECT_MS(time(Collective::all_reduce, {2, 3, 1}), 4.002 + 4 * (0.010 + 40.0 / 3));
}

// Of 8 nodes in fours below a switch with half the bandwidth upwards. Of an all-to-all pair by pair, 7 rounds of m/8,
// 4 of 7 messages go to the other switch, and 2 x 4/7 > 1: 7 (10 us + 5 ms x 8/7). With 1.5 it would be 6/7 of what
// NICs take: these set the pace. Of Bruck's three rounds of m/2 the first goes to the next node, of which one in four
// leaves the switch, the second two nodes further (two in four, 2 x 2/4 = 1), the third four, all of them.
TEST(Oversubscription, NarrowsWhatClimbs) {
  TopologySpec spec = test::cpu_spec(8, 1);
  spec.levels = 2;
  spec.nodes_per_switch = 4;
  const auto time = [&](Algorithm algorithm, double oversubscription) {
    spec.oversubscription = oversubscription;
    const Network network(Topology::make(spec).value(), test::straight_lines(), {}, algorithm);
    return network.collective(Collective::all_to_all, Bytes{m}, {1, 8, 1}).time.time.value();
  };
  EXPECT_MS(time(Algorithm::pairwise, 2), 7 * 0.010 + 40.0);
  EXPECT_MS(time(Algorithm::pairwise, 1.5), 7 * 0.010 + 35.0);
  EXPECT_MS(time(Algorithm::bruck, 2), 3 * 0.010 + 20.0 + 20.0 + 40.0);
  EXPECT_MS(time(Algorithm::bruck, 1.25), 3 * 0.010 + 20.0 + 20.0 + 25.0);
}

// In order, of 8 nodes 4 is the child of 0, 2 and 6 are those of 4, and 1, 3, 5 and 7 of these: of the first tree the
// edge from 2 up to 4 leads out of the first four and that from 4 up to 0 into them; of its mirror (7 - 3 - {1, 5})
// those from 3 to 7 and from 5 to 3. Each has m/2, so one of four nodes' worth goes either way: 4 narrows nothing, and
// 6 by half as much again: 2 x 3 (10 us + 1.5 c b) + 2 (m - c) 1.5 b.
TEST(Oversubscription, OfATreeWhatItsEdgesCarry) {
  TopologySpec spec = test::cpu_spec(8, 1);
  spec.levels = 2;
  spec.nodes_per_switch = 4;
  const auto time = [&](double oversubscription) {
    spec.oversubscription = oversubscription;
    const Network network(Topology::make(spec).value(), test::straight_lines(), {}, Algorithm::tree);
    return network.collective(Collective::all_reduce, Bytes{m}, {1, 8, 1}).time.time.value();
  };
  const double chunk = 0.6144;
  EXPECT_MS(time(1), 2 * (3 * (0.010 + chunk) + 40.0 - chunk));
  EXPECT_MS(time(4), time(1) * 1e3);
  EXPECT_MS(time(6), 2 * (3 * (0.010 + 1.5 * chunk) + 1.5 * (40.0 - chunk)));
}

// Two ranks of a node behind one NIC of 4 GB/s, each by a link of its own of 3 GB/s: 0.92 of these is what they give.
// Alone a message goes by its link's, two share the NIC.
TEST(PointToPoint, ANicIsSharedButNotTheWayToIt) {
  TopologySpec spec = test::cpu_spec(2, 2);
  spec.device_link = {LinkKind::pcie, BytesPerSecond{3e9}, Seconds{1e-6}};
  spec.nic_bandwidth = BytesPerSecond{4e9};
  const Network network(Topology::make(spec).value(), {}, {}, Algorithm::ring);
  const auto stream = [&](int pairs) {
    return (network.point_to_point(Bytes{m}, false, pairs).time - network.point_to_point(Bytes{0}, false, pairs).time)
        .value();
  };
  EXPECT_NEAR(stream(1), m / (0.92 * 3e9), 1e-9);
  EXPECT_NEAR(stream(2), m / (0.92 * 2e9), 1e-9);
}

// Of four NICs a device has two: each half of a message goes by one, whatever the algorithm. Of 2 nodes of 2 ranks an
// all-to-all pair by pair has three rounds of m/4, in which one, both and one of a node's ranks send to the other node:
// by one NIC for both m/4, m/2 and m/4, by one for each m/4 three times, by two for each half of that.
TEST(PointToPoint, ADevicesOwnNicsShareItsMessages) {
  TopologySpec spec = test::cpu_spec(2, 2);
  const auto stream = [&](int nics, auto&& time) {
    spec.nics_per_node = nics;
    const auto network = [&](Algorithm a) { return Network(Topology::make(spec).value(), {}, {}, a); };
    return time(network, Bytes{m}) - time(network, Bytes{0});
  };
  const auto message = [](auto&& network, Bytes bytes) {
    return network(Algorithm::ring).point_to_point(bytes, false, 2).time.value();
  };
  const auto exchange = [](auto&& network, Bytes bytes) {
    return network(Algorithm::pairwise).collective(Collective::all_to_all, bytes, {2, 2, 1}).time.time.value();
  };
  const double nic = 0.92 * 100e6;
  EXPECT_NEAR(stream(1, message), 2 * m / nic, 1e-9);
  EXPECT_NEAR(stream(2, message), m / nic, 1e-9);
  EXPECT_NEAR(stream(4, message), m / 2 / nic, 1e-9);
  EXPECT_NEAR(stream(1, exchange), m / nic, 1e-9);
  EXPECT_NEAR(stream(2, exchange), 3 * m / 4 / nic, 1e-9);
  EXPECT_NEAR(stream(4, exchange), 3 * m / 8 / nic, 1e-9);
}

Network adding(const TopologySpec& spec) {
  return {Topology::make(spec).value(), test::straight_lines(), {}, Algorithm::in_network};
}

double added(const TopologySpec& spec, GroupPlacement placement) {
  return adding(spec).collective(Collective::all_reduce, Bytes{m}, placement).time.time.value();
}

TopologySpec with_adding_node(int nodes, int devices_per_node) {
  TopologySpec spec = test::cpu_spec(nodes, devices_per_node);
  spec.device_link.kind = LinkKind::nvswitch;
  spec.device_link.reduces = true;
  return spec;
}

// Inside: two latencies of 1 us and 3/2 m at 0.8 of the rate, 7.5 ms. Between: both devices of a node send m/2 once,
// over one NIC: 10 us + 2 * 20 ms, whatever the nodes; what the node does streams meanwhile. A GPU library launches in
// 7 us.
TEST(InNetworkTime, SwitchesAdd) {
  TopologySpec spec = with_adding_node(8, 2);
  spec.switches_reduce = true;
  EXPECT_MS(added(spec, {2, 1, 1}), 0.007 + 0.002 + 7.5);
  EXPECT_MS(added(spec, {2, 2, 1}), 0.007 + 0.002 + 40.010);
  EXPECT_MS(added(spec, {2, 8, 1}), 0.007 + 0.002 + 40.010);
  // Eight NICs, four for each device: m/8 over each takes 10 us + 5 ms, less than the node.
  spec.nics_per_node = 8;
  EXPECT_MS(added(spec, {2, 2, 1}), 0.007 + 0.002 + 0.010 + 7.5);
}

// Without such switches between nodes both ranks all-reduce m/2 at once over one NIC, in trees: 2 (10 us + 2 m/4 b) =
// 40.020 ms, whose chunks wait for half of 22 us of latency; without them in the node a ring sums there: 2 (1 us + m/2
// b').
TEST(InNetworkTime, SwitchesAddInOnePlace) {
  EXPECT_MS(added(with_adding_node(2, 2), {2, 2, 1}), 0.007 + 0.002 + 40.020 + 0.011);
  TopologySpec outside = test::cpu_spec(2, 2);
  outside.switches_reduce = true;
  EXPECT_MS(added(outside, {2, 2, 1}), 0.002 + 40.010);
}

// Where no switch adds it is a ring.
TEST(InNetworkTime, WithoutSuchSwitches) {
  const Network network = adding(test::cpu_spec(2, 2));
  EXPECT_MS(added(test::cpu_spec(2, 2), {2, 2, 1}), 6 * (0.0055 + 10.0));
  EXPECT_EQ(network.collective(Collective::all_reduce, Bytes{m}, {2, 2, 1}).algorithm, Algorithm::ring);
}

// A GPU library takes it where switches add and it is fastest, and never where they do not: of 8 devices a ring takes
// 14 (1 us
// + m/8 b') = 7.014 ms, switches that add 2 us + 9/8 m b'/0.8 = 5.627 ms.
TEST(InNetworkTime, IsChosenWhereSwitchesAdd) {
  TopologySpec spec = with_adding_node(2, 8);
  const auto chosen = [&] {
    return Network(Topology::make(spec).value(), test::straight_lines(), {})
        .collective(Collective::all_reduce, Bytes{m}, {8, 1, 1})
        .algorithm;
  };
  EXPECT_EQ(chosen(), Algorithm::in_network);
  spec.device_link.reduces = false;
  EXPECT_EQ(chosen(), Algorithm::ring);
}

// What a device link gives is read off the largest all-reduce, of which 3/2 m go round among 4: 600 MB in 4 ms. Where
// switches add it is theirs, and the all-gather tells: 3/4 m, 300 MB in 3 ms. A ring of all 400 MB moves 600 MB.
TEST(InNetworkTime, LinksAreReadOffAllGathersWhereSwitchesAdd) {
  const auto sample = [](Collective collective, double bytes, double seconds) {
    return CollectiveSample{collective, Algorithm::automatic, {4, 1, 1}, Bytes{bytes}, Seconds{seconds}, 0.0, {}};
  };
  const std::vector<CollectiveSample> samples{
      sample(Collective::all_reduce, 1e3, 13e-6), sample(Collective::all_reduce, 4e8, 13e-6 + 4e-3),
      sample(Collective::all_gather, 1e3, 10e-6), sample(Collective::all_gather, 4e8, 10e-6 + 3e-3)};
  TopologySpec spec = with_adding_node(1, 4);
  const auto ring = [&] {
    return Network(Topology::make(spec).value(), {}, samples)
        .collective(Collective::all_reduce, Bytes{4e8}, {4, 1, 1}, Algorithm::ring)
        .time.time.value();
  };
  EXPECT_NEAR(ring(), 6e-3, 0.05e-3);
  spec.device_link.reduces = false;
  EXPECT_NEAR(ring(), 4e-3, 0.05e-3);
}

// An all-reduce is a ring. Of a broadcast each rank that has it sends all of it to one that has not: 2 rounds make 4
// ranks.
TEST(GlooTime, RingAndBinomialTree) {
  EXPECT_MS(time_of(Algorithm::gloo, {1, 4, 1}), 6 * (0.010 + 10.0));
  EXPECT_MS(time_of(Algorithm::gloo, {1, 4, 1}, Collective::broadcast), 2 * 40.010);
  EXPECT_MS(time_of(Algorithm::gloo, {1, 2, 1}, Collective::broadcast), 40.010);
}

// Messages of m/4, all at once: one inside takes 1 ms; two between nodes, sent by two ranks each, 2 * 2 * 10 ms.
TEST(PairwiseTime, AllToAll) {
  EXPECT_MS(time_of(Algorithm::automatic, {2, 2, 1}, Collective::all_to_all), 0.010 + 40.0);
}

// In the node m/2 to the other rank, 1 us + 2 ms; then m/2 to the other node by both ranks at once over one NIC. Of
// four nodes m/4 to each of three others.
TEST(HierarchicalTime, AllToAll) {
  EXPECT_MS(time_of(Algorithm::hierarchical, {2, 2, 1}, Collective::all_to_all), 2.001 + 40.010);
  EXPECT_MS(time_of(Algorithm::hierarchical, {2, 4, 1}, Collective::all_to_all), 2.001 + 0.010 + 3 * 20.0);
  EXPECT_MS(time_of(Algorithm::hierarchical, {1, 2, 1}, Collective::all_to_all), 20.010);
}

// All to the only neighbour, half to each of two. Of four ranks on two nodes half of m crosses between the nodes; a node
// between two others sends half to each, whether one rank of it does or two.
TEST(PairwiseTime, Halos) {
  EXPECT_MS(time_of(Algorithm::automatic, {1, 2, 1}, Collective::send_receive), 40.010);
  EXPECT_MS(time_of(Algorithm::automatic, {2, 1, 1}, Collective::send_receive), 4.001);
  EXPECT_MS(time_of(Algorithm::automatic, {2, 2, 1}, Collective::send_receive), 20.010);
  EXPECT_MS(time_of(Algorithm::automatic, {1, 4, 1}, Collective::send_receive), 0.010 + 2 * 20.0);
  EXPECT_MS(time_of(Algorithm::automatic, {2, 4, 1}, Collective::send_receive), 0.010 + 2 * 20.0);
  EXPECT_MS(time_of(Algorithm::automatic, {1, 2, 2}, Collective::send_receive), 0.010 + 2 * 40.0);
}

// Four NICs, four ranks of a node: a ring on each NIC, each with a quarter of the bytes.
TEST(RingTime, SpreadsOverTheNics) {
  TopologySpec spec = test::cpu_spec(2, 4);
  spec.nics_per_node = 4;
  const Network network(Topology::make(spec).value(), test::straight_lines(), {}, Algorithm::ring);
  // p = 8: 14 rounds; mean latency (6 * 1 + 2 * 10) / 8 = 3.25 us; m/8/4 = 125 kB between nodes (1.25 ms), m/8 = 500
  // kB inside (0.5 ms).
  EXPECT_MS(network.collective(Collective::all_reduce, Bytes{m}, {4, 2, 1}).time.time.value(), 14 * (0.00325 + 1.25));
}

// Messages of one node spread over its four NICs: four take as long as one, of five two share a NIC.
TEST(PointToPointTime, SpreadsOverTheNics) {
  TopologySpec spec = test::cpu_spec(2, 8);
  spec.nics_per_node = 4;
  const Network network(Topology::make(spec).value(), test::straight_lines(), {}, Algorithm::ring);
  EXPECT_MS(network.point_to_point(Bytes{m}, false, 1).time.value(), 0.010 + 40.0);
  EXPECT_MS(network.point_to_point(Bytes{m}, false, 4).time.value(), 0.010 + 40.0);
  EXPECT_MS(network.point_to_point(Bytes{m}, false, 5).time.value(), 0.010 + 80.0);
}

TEST(AnyTime, OfOneRankIsNothing) {
  const Network network = test::straight_network(1, 1, Algorithm::automatic);
  for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::all_to_all})
    EXPECT_EQ(network.collective(collective, Bytes{m}, {1, 1, 1}).time.time.value(), 0.0);
}

// A ring of two: 2 (10 us + 1000 B b) = 40 us, and 20.01 us of one byte, which keeps no wire busy.
TEST(WireUse, IsWhatAMessageTakesBeyondAnEmptyOne) {
  const Network network = test::straight_network(2, 2, Algorithm::ring);
  const auto use = [&](GroupPlacement placement, double bytes) {
    return network.wire_use(Collective::all_reduce, network.collective(Collective::all_reduce, Bytes{bytes}, placement),
                            placement);
  };
  EXPECT_NEAR(use({1, 2, 1}, 2000).busy, 1 - 20.01 / 40, 1e-9);
  EXPECT_TRUE(use({1, 2, 1}, 2000).between_nodes);
  EXPECT_NEAR(use({2, 1, 1}, 2000).busy, 1 - 2.001 / 4, 1e-9) << "2 (1 us + 1000 B at 1 GB/s)";
  EXPECT_FALSE(use({2, 1, 1}, 2000).between_nodes);
  EXPECT_TRUE(use({2, 2, 1}, 2000).between_nodes);
  EXPECT_EQ(use({1, 2, 1}, 0).busy, 0);
  EXPECT_EQ(use({1, 1, 1}, 2000).busy, 0);
}

// Left to itself it sends one byte by recursive doubling, 3 x 10 us between eight ranks; 4 MB go round a ring, whose 14
// messages take 140 us if they are empty.
TEST(WireUse, ComparesWithTheSameAlgorithm) {
  const Network network = test::straight_network(8, 1, Algorithm::automatic);
  const CollectiveEstimate whole = network.collective(Collective::all_reduce, Bytes{m}, {1, 8, 1});
  ASSERT_EQ(whole.algorithm, Algorithm::ring);
  EXPECT_NEAR(network.wire_use(Collective::all_reduce, whole, {1, 8, 1}).busy, 1 - 140.0 / 70140, 1e-5);
}

// Of 8 ranks on each of 2 nodes: a ring enters and leaves a node once, and so do other such rings beside it; all-to-all
// leaves it from every rank. Where each group has a NIC of its own they are one each.
TEST(WireUse, CountsFlows) {
  const Network network = test::straight_network(16, 8, Algorithm::ring);
  const auto flows = [](const Network& of, Collective collective, GroupPlacement placement) {
    return of.wire_use(collective, of.collective(collective, Bytes{m}, placement), placement).flows;
  };
  EXPECT_EQ(flows(network, Collective::all_reduce, {8, 2, 1}), 1);
  EXPECT_EQ(flows(network, Collective::all_reduce, {1, 2, 8}), 8);
  EXPECT_EQ(flows(network, Collective::all_to_all, {8, 2, 1}), 8);
  EXPECT_EQ(flows(network, Collective::all_to_all, {4, 2, 2}), 8);
  EXPECT_EQ(flows(network, Collective::all_reduce, {8, 1, 1}), 1) << "each rank sends by a link of its own";
  EXPECT_EQ(network.flows(4), 4);
}

// The library's own choice was timed: eight ranks send 1 KiB by recursive doubling, so all four of a node at once, and
// 4 MB around a ring.
TEST(WireUse, CountsFlowsOfWhatALibraryChose) {
  const GroupPlacement all{4, 2, 1};
  const auto sample = [&](double bytes, double seconds) {
    return CollectiveSample{Collective::all_reduce, Algorithm::automatic, all, Bytes{bytes}, Seconds{seconds}, 0.0, {}};
  };
  const Network network = test::straight_network(2, 4, Algorithm::automatic, {sample(1024, 1e-3), sample(m, 100e-3)});
  const auto flows = [&](double bytes) {
    const CollectiveEstimate estimate = network.collective(Collective::all_reduce, Bytes{bytes}, all);
    return network.wire_use(Collective::all_reduce, estimate, all).flows;
  };
  EXPECT_EQ(flows(1024), 4);
  EXPECT_EQ(flows(m), 1);
}

// Of 10 ranks 8, 1 and 1; of 5 on nodes of two 2, 2 and 1.
TEST(UnevenGroup, LastNodesLackRanks) {
  const GroupPlacement long_tail{8, 3, 1, 14}, fives{2, 3, 1, 1};
  EXPECT_EQ(long_tail.size(), 10);
  EXPECT_EQ(long_tail.on_node(0), 8);
  EXPECT_EQ(long_tail.on_node(1), 1);
  EXPECT_EQ(long_tail.on_node(2), 1);
  EXPECT_EQ(fives.size(), 5);
  EXPECT_EQ(fives.on_node(1), 2);
  EXPECT_EQ(fives.fewest_on_a_node(), 1);
  EXPECT_EQ((GroupPlacement{4, 3, 2}).fewest_on_a_node(), 4);
}

// 2 (p - 1) rounds of m/p. Two nodes have 2 + 1, 4 + 1, 4 + 2 or 4 + 3 ranks, whose ring crosses between nodes twice:
// mean latencies (1 + 20) / 3 = 7 us, (3 + 20) / 5, (4 + 20) / 6 and (5 + 20) / 7; of two groups at once b doubles.
TEST(UnevenGroup, Ring) {
  EXPECT_MS(time_of(Algorithm::ring, {2, 2, 1, 1}), 4 * (0.007 + 40.0 / 3));
  EXPECT_MS(time_of(Algorithm::ring, {4, 2, 1, 3}), 8 * (0.0046 + 8.0));
  EXPECT_MS(time_of(Algorithm::ring, {4, 2, 1, 2}), 10 * (0.004 + 40.0 / 6));
  EXPECT_MS(time_of(Algorithm::ring, {4, 2, 1, 1}), 12 * (0.025 / 7 + 40.0 / 7));
  EXPECT_MS(time_of(Algorithm::ring, {2, 2, 2, 1}), 4 * (0.007 + 80.0 / 3));
}

// Eight ranks and four, each with a NIC of its own: four rings, as many as the node of four has NICs for.
TEST(UnevenGroup, RingsOfTheNodeWithTheFewestRanks) {
  TopologySpec spec = test::cpu_spec(2, 8);
  spec.nics_per_node = 8;
  const Network network(Topology::make(spec).value(), test::straight_lines(), {}, Algorithm::ring);
  EXPECT_MS(network.collective(Collective::all_reduce, Bytes{m}, {8, 2, 1, 4}).time.time.value(),
            22 * ((10 * 0.001 + 2 * 0.010) / 12 + 40.0 / 12 / 4));
}

// Ranks 0 and 1 | 2. Rank 0 folds into 1 in the node, 1 and 2 exchange all (or half of it, twice), 0 gets the sum.
TEST(UnevenGroup, Doubling) {
  EXPECT_MS(time_of(Algorithm::recursive_doubling, {2, 2, 1, 1}), 4.001 + 40.010 + 4.001);
  EXPECT_MS(time_of(Algorithm::rabenseifner, {2, 2, 1, 1}), 4.001 + 2 * 20.010 + 4.001);
}

// Ranks 0 and 1 | 2 | 3. Neighbours, m/4: 2 and 3 are on different nodes. At distance 2, m/2: both of the first node
// with the others, over one NIC.
TEST(UnevenGroup, Halving) {
  EXPECT_MS(time_of(Algorithm::halving_doubling, {2, 3, 1, 2}, Collective::reduce_scatter), 10.010 + 40.010);
}

// Parts of m/3 and m/5. Of 0 and 1 | 2 one leaves the first node at each distance; of 0 to 3 | 4 one, too, with one
// part, two and one.
TEST(UnevenGroup, Bruck) {
  EXPECT_MS(time_of(Algorithm::bruck, {2, 2, 1, 1}, Collective::all_gather), 2 * (0.010 + 40.0 / 3));
  EXPECT_MS(time_of(Algorithm::bruck, {4, 2, 1, 3}, Collective::all_gather), 2 * 8.010 + 16.010);
}

// Two ranks (four, four) send one part (one, three) each out of their node at once; pair by pair one at a time.
TEST(UnevenGroup, AllToAll) {
  EXPECT_MS(time_of(Algorithm::automatic, {2, 2, 1, 1}, Collective::all_to_all), 0.010 + 2 * 40.0 / 3);
  EXPECT_MS(time_of(Algorithm::automatic, {4, 2, 1, 3}, Collective::all_to_all), 0.010 + 4 * 8.0);
  EXPECT_MS(time_of(Algorithm::automatic, {4, 2, 1, 1}, Collective::all_to_all), 0.010 + 12 * 40.0 / 7);
  EXPECT_MS(time_of(Algorithm::pairwise, {2, 2, 1, 1}, Collective::all_to_all), 2 * (0.010 + 40.0 / 3));
  EXPECT_MS(time_of(Algorithm::pairwise, {4, 2, 1, 3}, Collective::all_to_all), 4 * 8.010);
}

double uneven(Algorithm algorithm, GroupPlacement placement, double imbalance, int nics = 1) {
  TopologySpec spec = test::cpu_spec(placement.nodes, placement.ranks_per_node);
  spec.nics_per_node = nics;
  const Network network(Topology::make(spec).value(), test::straight_lines(), {}, algorithm);
  return network.uneven_all_to_all(Bytes{m}, placement, imbalance).time.time.value();
}

// The busiest of four gets two parts' worth from each of three: a + 3 (2 m/4) b; all of it from each where all goes to
// one, however much more is asked for. Pair by pair each round waits for it; Bruck's parts are all as long as the
// longest.
TEST(UnevenAllToAllTime, TheBusiestRankCounts) {
  EXPECT_MS(uneven(Algorithm::ring, {1, 4, 1}, 1.0), time_of(Algorithm::ring, {1, 4, 1}, Collective::all_to_all) * 1e3);
  EXPECT_MS(uneven(Algorithm::ring, {1, 4, 1}, 2.0), 0.010 + 3 * 20.0);
  EXPECT_MS(uneven(Algorithm::ring, {4, 1, 1}, 4.0), 0.001 + 3 * 4.0);
  EXPECT_MS(uneven(Algorithm::ring, {4, 1, 1}, 9.0), 0.001 + 3 * 4.0);
  EXPECT_MS(uneven(Algorithm::pairwise, {1, 4, 1}, 2.0), 3 * (0.010 + 20.0));
  EXPECT_MS(uneven(Algorithm::bruck, {1, 4, 1}, 2.0), 2 * (0.010 + 40.0));
  EXPECT_EQ(uneven(Algorithm::ring, {1, 1, 1}, 1.0), 0.0);
}

// Four ranks of a node share a NIC, for which 4 x 4 parts of m/8 come, 80 ms: with the busiest they get (2 + 3 (6/7)) /
// 4 = 8/7 of their share, all of it twice. With a NIC each the busiest's has twice 20 ms.
TEST(UnevenAllToAllTime, OthersOfANicGetLess) {
  EXPECT_MS(uneven(Algorithm::ring, {4, 2, 1}, 2.0), 0.010 + 80.0 * 8 / 7);
  EXPECT_MS(uneven(Algorithm::ring, {4, 2, 1}, 8.0), 0.010 + 160.0);
  EXPECT_MS(uneven(Algorithm::ring, {4, 2, 1}, 2.0, 4), 0.010 + 40.0);
}

// In the node m/2 to the other place, of which the busiest's, with that on the other node, has (2 + 2/3) / 2 = 4/3;
// between nodes m/2 from each of two ranks over one NIC, 4/3 again.
TEST(UnevenAllToAllTime, HierarchicalByPlaces) {
  EXPECT_MS(uneven(Algorithm::hierarchical, {2, 2, 1}, 2.0), 0.001 + 2.0 * 4 / 3 + 0.010 + 40.0 * 4 / 3);
}

TEST(UnevenAllToAllTime, NeverFallsWithTheImbalance) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::pairwise, Algorithm::bruck, Algorithm::hierarchical})
    for (const GroupPlacement placement : {GroupPlacement{1, 8, 1}, {8, 1, 1}, {4, 2, 1}, {2, 4, 2}}) {
      double before = 0.0;
      for (double imbalance = 1.0; imbalance <= 8.0; imbalance *= 1.25) {
        const double time = uneven(algorithm, placement, imbalance);
        EXPECT_GT(time, before * (1 - 1e-12)) << to_string(algorithm) << " " << imbalance;
        before = time;
      }
    }
}

// What was measured of even parts is carried by the formula's ratio, 60.010 to 30.010, and not called measured.
TEST(UnevenAllToAllTime, CarriesSamples) {
  const GroupPlacement four{1, 4, 1};
  const Network network = test::straight_network(
      4, 1, Algorithm::automatic,
      {{Collective::all_to_all, Algorithm::automatic, four, Bytes{m}, Seconds{0.050}, 0.0, "test"}});
  const Estimate even = network.uneven_all_to_all(Bytes{m}, four, 1.0).time;
  EXPECT_EQ(even.provenance, Provenance::measured);
  EXPECT_MS(even.time.value(), 50.0);
  const Estimate twice = network.uneven_all_to_all(Bytes{m}, four, 2.0).time;
  EXPECT_EQ(twice.provenance, Provenance::interpolated);
  EXPECT_MS(twice.time.value(), 50.0 * 60.010 / 30.010);
  EXPECT_NEAR(twice.relative_error, 0.10, 1e-9);
}

}  // namespace
}  // namespace sibyl

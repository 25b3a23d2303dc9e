// Collectives as rounds of messages on fabrics: times by hand, what each rank sends, closed form against simulation.
#include <gtest/gtest.h>

#include "netmodel/collective/algorithms.h"
#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl::fabric {
namespace {

constexpr double m = 8e6;  // bytes: 80 ms on a link of 100 MB/s

Schedule schedule_on(const Fabric& fabric, Collective collective, Algorithm algorithm,
                     const GroupPlacement& placement) {
  return schedule(collective, algorithm, Layout(fabric, placement, placement.nodes), false);
}

double seconds_on(const Fabric& fabric, Collective collective, Algorithm algorithm, const GroupPlacement& placement) {
  const std::shared_ptr<const Fabric> lent(std::shared_ptr<void>(), &fabric);
  const Costs costs(lent, {placement.nodes, 1.0, 1.0, false});
  return costs.seconds(collective, algorithm, m, placement);
}

// 2 (p - 1) rounds of a hop's latency and m/p.
TEST(CollectiveOnFabric, RingOnARing) {
  const Fabric ring = test::direct(Torus{{8}}, 8);
  EXPECT_NEAR(seconds_on(ring, Collective::all_reduce, Algorithm::ring, {1, 8, 1}), 14 * (1e-6 + 0.010), 1e-9);
}

// Half of the bytes each way: every cable carries both directions, each half as much.
TEST(CollectiveOnFabric, BothWaysRoundARing) {
  const Fabric ring = test::direct(Torus{{8}}, 8);
  const auto time = [&](Collective collective) {
    return seconds_on(ring, collective, Algorithm::bidirectional_ring, {1, 8, 1});
  };
  EXPECT_NEAR(time(Collective::all_reduce), 14 * (1e-6 + 0.005), 1e-9);
  EXPECT_NEAR(time(Collective::reduce_scatter), 7 * (1e-6 + 0.005), 1e-9);
  EXPECT_NEAR(time(Collective::all_gather), 7 * (1e-6 + 0.005), 1e-9);
  // Where both directions share a cable nothing is gained.
  FabricSpec half = test::shape(Torus{{8}});
  half.direct = true;
  half.link = {BytesPerSecond{}, Seconds{1e-6}, Duplex::half};
  const Fabric shared = Fabric::make(test::cpu_spec(8, 1), half).value();
  EXPECT_NEAR(seconds_on(shared, Collective::all_gather, Algorithm::bidirectional_ring, {1, 8, 1}), 7 * (1e-6 + 0.010),
              1e-9);
}

// To the ranks 1, 2 and 4 before, with 1, 2 and 4 parts of m/8: 1, 2 and (both ways round) 4/2 messages cross each
// cable one way. To all: 4 parts of m/8 each time, to the ranks after.
TEST(CollectiveOnFabric, BruckOnARing) {
  const Fabric ring = test::direct(Torus{{8}}, 8);
  EXPECT_NEAR(seconds_on(ring, Collective::all_gather, Algorithm::bruck, {1, 8, 1}),
              (1e-6 + 0.010) + (2e-6 + 2 * 0.020) + (4e-6 + 2 * 0.040), 1e-9);
  EXPECT_NEAR(seconds_on(ring, Collective::all_to_all, Algorithm::bruck, {1, 8, 1}),
              (1e-6 + 0.040) + (2e-6 + 2 * 0.040) + (4e-6 + 2 * 0.040), 1e-9);
}

// Four nodes of two under one switch: m/2 to the other device, by its 1 GB/s; then both devices of a node send m/4 to
// each of three nodes over one NIC, 6 messages of m/4 where pairs send 12 of m/8.
TEST(CollectiveOnFabric, HierarchicalAllToAll) {
  const Fabric leaf = test::with_nics(LeafSpine{4, 1, 1}, 4, 2);
  EXPECT_NEAR(seconds_on(leaf, Collective::all_to_all, Algorithm::hierarchical, {2, 4, 1}),
              (1e-6 + 0.004) + (10e-6 + 6 * 0.020), 1e-9);
  const Schedule all = schedule_on(leaf, Collective::all_to_all, Algorithm::hierarchical, {2, 4, 1});
  ASSERT_EQ(all.rounds.size(), 2U);
  EXPECT_EQ(all.rounds[0].messages.size(), 8U);
  EXPECT_EQ(all.rounds[1].messages.size(), 24U);
  const Schedule pairs = schedule_on(leaf, Collective::all_to_all, Algorithm::ring, {2, 4, 1});
  const auto between_nodes = [](const Round& round) {
    double bytes = 0.0;
    for (const Message& message : round.messages)
      if (message.from / 2 != message.to / 2) bytes += message.bytes;
    return bytes;
  };
  EXPECT_NEAR(between_nodes(all.rounds[1]), between_nodes(pairs.rounds[0]), 1e-12);
}

// Partners at distance d on a ring: 2 d messages of a block of 2 d cross its middle, d each way; at half-way round each
// is split over both ways. All of m: distance 1: m; 2: 2 m; 4: split, 4 m / 2.
TEST(CollectiveOnFabric, RecursiveDoublingOnARing) {
  const Fabric ring = test::direct(Torus{{8}}, 8);
  EXPECT_NEAR(seconds_on(ring, Collective::all_reduce, Algorithm::recursive_doubling, {1, 8, 1}),
              (1e-6 + 0.080) + (2e-6 + 0.160) + (4e-6 + 0.160), 1e-9);
  // Halves of it, quarters, eighths.
  EXPECT_NEAR(seconds_on(ring, Collective::all_reduce, Algorithm::rabenseifner, {1, 8, 1}),
              2 * ((1e-6 + 0.040) + (2e-6 + 0.040) + (4e-6 + 0.020)), 1e-9);
}

// Of p (p - 1) messages of m/p in a ring of 8, each channel is crossed by 1 + 2 + 3 + 4/2 · … : the sum of distances 8
// (1 + 2 + 3) one way and 8 · 4 / 2 each way, over 8 channels: 8.
TEST(CollectiveOnFabric, AllToAllOnARing) {
  const Fabric ring = test::direct(Torus{{8}}, 8);
  EXPECT_NEAR(seconds_on(ring, Collective::all_to_all, Algorithm::ring, {1, 8, 1}), 4e-6 + 8 * 0.010, 1e-9);
}

// A tree's oversubscription shows where groups lie under several leaves, and not for a ring inside one.
TEST(CollectiveOnFabric, OversubscriptionSlowsWhatClimbs) {
  const LeafSpine leaves{4, 4, 2};
  const Fabric full = test::with_nics(leaves, 16), narrow = test::with_nics(leaves, 16, 1, Ecmp::split, 4.0);
  const auto both = [&](Algorithm algorithm, const GroupPlacement& placement) {
    return seconds_on(narrow, Collective::all_reduce, algorithm, placement) /
           seconds_on(full, Collective::all_reduce, algorithm, placement);
  };
  EXPECT_NEAR(both(Algorithm::ring, {1, 4, 1}), 1.0, 1e-9);
  EXPECT_NEAR(both(Algorithm::ring, {1, 16, 1}), 1.0,
              1e-9);  // one message of a leaf climbs, over a NIC's worth of uplinks
  EXPECT_GT(both(Algorithm::recursive_doubling, {1, 16, 1}), 2.0);
}

// Groups of a node share its NIC; those on further nodes have their own.
TEST(CollectiveOnFabric, GroupsShareNics) {
  const Fabric fabric = test::with_nics(LeafSpine{4, 1, 1}, 4, 2);
  const double one = seconds_on(fabric, Collective::all_reduce, Algorithm::ring, {1, 4, 1});
  const double two = seconds_on(fabric, Collective::all_reduce, Algorithm::ring, {1, 4, 2});
  EXPECT_NEAR(one, 6 * (10e-6 + 0.020), 1e-9);
  EXPECT_NEAR(two, 6 * (10e-6 + 0.040), 1e-9);
}

// Devices 0 and 1 | 2: a ring of three messages, two of which cross, in 7 us of latency in the mean; what node 0 sends
// in an all-to-all, two parts; and rank 0 folds into 1, which exchanges with 2.
TEST(CollectiveOnFabric, OfThreeRanksOnTwoNodes) {
  const Fabric leaf = test::with_nics(LeafSpine{2, 1, 1}, 2, 2);
  const GroupPlacement three{2, 2, 1, 1};
  EXPECT_NEAR(seconds_on(leaf, Collective::all_reduce, Algorithm::ring, three), 4 * (7e-6 + 0.080 / 3), 1e-9);
  EXPECT_NEAR(seconds_on(leaf, Collective::all_to_all, Algorithm::ring, three), 10e-6 + 2 * 0.080 / 3, 1e-9);
  EXPECT_NEAR(seconds_on(leaf, Collective::all_reduce, Algorithm::recursive_doubling, three),
              2 * (1e-6 + 0.008) + 10e-6 + 0.080, 1e-9);
  const Schedule ring = schedule_on(leaf, Collective::all_reduce, Algorithm::ring, three);
  ASSERT_EQ(ring.rounds.size(), 1U);
  EXPECT_EQ(ring.rounds[0].messages.size(), 3U);
}

// 8 ranks of a node, 1 and 1: the last two are the first devices of their nodes. Two NICs of the first node are no use
// where the others have one rank: one ring, which enters at device 0.
TEST(CollectiveOnFabric, LayoutOfNodesThatLackRanks) {
  TopologySpec spec = test::cpu_spec(3, 8);
  spec.nics_per_node = 2;
  const Fabric leaf = Fabric::make(spec, test::shape(LeafSpine{3, 1, 1})).value();
  const Layout layout(leaf, {8, 3, 1, 14}, 3);
  EXPECT_EQ(layout.device(0, 7), 7);
  EXPECT_EQ(layout.device(0, 8), 8);
  EXPECT_EQ(layout.device(0, 9), 16);
  EXPECT_EQ(layout.stripes(), 1);
  // 8 + 2: a ring for each NIC, by devices 0 and 4 of the first node, 0 and 1 of the second.
  const Layout both(leaf, {8, 2, 1, 6}, 3);
  EXPECT_EQ(both.stripes(), 2);
  EXPECT_EQ(both.gate(0, 1), 4);
  EXPECT_EQ(both.gate(1, 1), 1);
  EXPECT_EQ(both.device(0, 9), 9);
}

// Six rings through the cube mesh use all of a device's bandwidth: 2 · 7/8 m / 1 GB/s and 14 latencies of 1 us.
TEST(CollectiveOnFabric, RingsUseAllLinksOfAMesh) {
  FabricSpec shape = test::shape(Torus{{1}});
  shape.inside = CubeMesh{6};
  const Fabric node = Fabric::make(test::cpu_spec(1, 8), shape).value();
  EXPECT_NEAR(seconds_on(node, Collective::all_reduce, Algorithm::ring, {8, 1, 1}), 14 * (1e-6 + 0.001), 1e-9);
}

// Under one switch with a NIC each the busiest of four gets 3 parts of 2 m/4, whoever sends pair by pair or at once;
// all by Bruck's padded parts. The flow simulation ends when the busiest NIC has all.
TEST(CollectiveOnFabric, UnevenAllToAll) {
  const Fabric leaf = test::with_nics(LeafSpine{4, 1, 1}, 4);
  const std::shared_ptr<const Fabric> lent(std::shared_ptr<void>(), &leaf);
  const Costs costs(lent, {4, 1.0, 1.0, false});
  const auto of = [&](Algorithm algorithm, double busiest) {
    return costs.schedule_of(Collective::all_to_all, algorithm, {1, 4, 1}, Algorithm::ring, {busiest});
  };
  EXPECT_NEAR(costs.seconds(of(Algorithm::ring, 2.0), m), 10e-6 + 3 * 0.040, 1e-9);
  EXPECT_NEAR(costs.seconds(of(Algorithm::pairwise, 2.0), m), 3 * (10e-6 + 0.040), 1e-9);
  EXPECT_NEAR(costs.seconds(of(Algorithm::bruck, 2.0), m), 2 * (10e-6 + 0.080), 1e-9);
  EXPECT_NEAR(costs.seconds(of(Algorithm::ring, 4.0), m), 10e-6 + 3 * 0.080, 1e-9) << "all to one";
  EXPECT_NEAR(simulated_seconds(leaf, costs.capacities(), of(Algorithm::ring, 2.0), m), 10e-6 + 3 * 0.040, 1e-9);
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::pairwise, Algorithm::bruck, Algorithm::hierarchical})
    EXPECT_DOUBLE_EQ(costs.seconds(of(algorithm, 1.0), m),
                     costs.seconds(Collective::all_to_all, algorithm, m, {1, 4, 1}));
}

// Over 2 x 4 ranks each gives 7/8 of its buffer, in parts for all; the busiest gets three times its share of what
// others give, the others 5/7 of theirs. Handed on inside a node, the busiest's place gets its three times by the last
// round.
TEST(CollectiveOnFabric, UnevenPartsAddUp) {
  const Fabric leaf = test::with_nics(LeafSpine{2, 1, 1}, 2, 4);
  const auto gets = [&](Algorithm algorithm, std::size_t round) {
    const Schedule all =
        schedule(Collective::all_to_all, algorithm, Layout(leaf, {4, 2, 1}, 2), false, Algorithm::ring, {3.0});
    std::vector<double> got(8, 0.0);
    for (const Message& message : all.rounds[round].messages)
      got[static_cast<std::size_t>(message.to)] += message.bytes;
    return got;
  };
  const std::vector<double> at_once = gets(Algorithm::ring, 0);
  const std::vector<double> last = gets(Algorithm::hierarchical, 1);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_NEAR(at_once[rank], (rank == 0 ? 3.0 : 5.0 / 7) * 7 / 8, 1e-12) << rank;
    EXPECT_NEAR(last[rank], (rank == 0 ? 3.0 : 5.0 / 7) / 2, 1e-12) << rank;  // from one other node
  }
  // What goes to the places of rank 0, on both nodes, in the mean: (3 + 5/7) / 2.
  const std::vector<double> first = gets(Algorithm::hierarchical, 0);
  for (std::size_t rank = 0; rank < 8; ++rank)
    EXPECT_NEAR(first[rank], (rank % 4 == 0 ? (3.0 + 5.0 / 7) / 2 : 5.0 / 7) * 3 / 4, 1e-12) << rank;
}

// What each rank sends is what the communicator's would, to the byte.
TEST(CollectiveOnFabric, RanksSendWhatBytesSentSays) {
  for (const int size : {2, 3, 4, 6, 8, 12}) {
    const Fabric fabric = test::direct(FullyConnected{}, size);
    for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                        Collective::broadcast, Collective::reduce, Collective::all_to_all})
      for (const Algorithm algorithm :
           {Algorithm::ring, Algorithm::bidirectional_ring, Algorithm::bruck, Algorithm::halving_doubling,
            Algorithm::binomial, Algorithm::linear, Algorithm::pairwise, Algorithm::recursive_doubling,
            Algorithm::rabenseifner, Algorithm::tree, Algorithm::hierarchical}) {
        if (!collective::runs(collective, algorithm)) continue;
        // Divisible by every size and power of two here, so that no part is longer by an element.
        constexpr std::int64_t elements = 1 << 10 << 2 << 2;
        const std::int64_t count = elements * size;
        const Schedule all = schedule_on(fabric, collective, algorithm, {1, size, 1});
        std::vector<double> sent(static_cast<std::size_t>(size), 0.0);
        for (const Round& round : all.rounds)
          for (const Message& message : round.messages)
            sent[static_cast<std::size_t>(message.from)] += message.bytes *
                                                            all.amount(round.of, static_cast<double>(count)) *
                                                            (round.of == Round::Of::whole ? round.times : 1.0);
        if (algorithm == Algorithm::tree) continue;  // below
        for (int rank = 0; rank < size; ++rank)
          EXPECT_NEAR(sent[static_cast<std::size_t>(rank)],
                      static_cast<double>(bytes_sent(collective, algorithm, count, 1, size, rank)), 1e-6)
              << to_string(collective) << " " << to_string(algorithm) << " " << size << " " << rank;
      }
  }
}

// Along 4 x 4 nodes: m/4 to the next of the row, then m/16 of the column, 3 steps each and both ways round again: 2 * 3
// * 1 us and 2 * 3 (m/4 + m/16) / rate, where a ring takes 30 us and 30 m/16 / rate.
TEST(CollectiveOnFabric, DimensionsOfATorus) {
  const Fabric torus = test::direct(Torus{{4, 4}}, 16);
  EXPECT_NEAR(seconds_on(torus, Collective::all_reduce, Algorithm::multi_dimensional, {1, 16, 1}),
              2 * (6e-6 + 3 * (m / 4 + m / 16) / test::rate), 1e-9);
  // A row alone is a ring of 4.
  EXPECT_NEAR(seconds_on(torus, Collective::all_gather, Algorithm::multi_dimensional, {1, 4, 1}),
              3 * (1e-6 + m / 4 / test::rate), 1e-9);
}

// Under leaves of two nodes m/2 goes round in each, then m/4 between them: 2 (10 us + 40 ms) + 2 (10 us + 20 ms);
// uplinks that carry half make the second twice as long.
TEST(CollectiveOnFabric, DimensionsOfLeaves) {
  const LeafSpine leaves{2, 2, 1};
  const auto time = [](const Fabric& fabric) {
    return seconds_on(fabric, Collective::all_reduce, Algorithm::multi_dimensional, {1, 4, 1});
  };
  EXPECT_NEAR(time(test::with_nics(leaves, 4)), 2 * (10e-6 + 0.040) + 2 * (10e-6 + 0.020), 1e-9);
  EXPECT_NEAR(time(test::with_nics(leaves, 4, 1, Ecmp::split, 2.0)), 2 * (10e-6 + 0.040) + 2 * (10e-6 + 0.040), 1e-9);
}

// Along 4 x 3 nodes of 2 devices each rank sends and gets 2 m 23/24, as in a ring: m/2 and m/2 in the node, then 3/8 m,
// then 2/3 m/8, and back.
TEST(CollectiveOnFabric, DimensionsMoveWhatARingMoves) {
  const Fabric torus = test::with_nics(Torus{{4, 3}}, 12, 2);
  const Schedule all = schedule_on(torus, Collective::all_reduce, Algorithm::multi_dimensional, {2, 12, 1});
  ASSERT_EQ(all.rounds.size(), 3U);
  std::vector<double> sent(24, 0.0), got(24, 0.0);
  for (const Round& round : all.rounds)
    for (const Message& message : round.messages) {
      sent[static_cast<std::size_t>(message.from)] += message.bytes * round.times;
      got[static_cast<std::size_t>(message.to)] += message.bytes * round.times;
    }
  const auto elements = std::int64_t{24} << 20;
  for (int rank = 0; rank < 24; ++rank) {
    const auto ring =
        static_cast<double>(bytes_sent(Collective::all_reduce, Algorithm::multi_dimensional, elements, 1, 24, rank));
    EXPECT_NEAR(sent[static_cast<std::size_t>(rank)] * static_cast<double>(elements), ring, 1e-3);
    EXPECT_NEAR(got[static_cast<std::size_t>(rank)] * static_cast<double>(elements), ring, 1e-3);
  }
}

// A tree's first chunk and its rest go over the same branches: both trees' up and down are what a rank sends.
TEST(CollectiveOnFabric, TreesSendWhatBytesSentSays) {
  constexpr int size = 8;
  const Fabric fabric = test::direct(FullyConnected{}, size);
  const Schedule up = schedule_on(fabric, Collective::all_reduce, Algorithm::tree, {1, size, 1});
  std::vector<double> sent(size, 0.0);
  for (const Round& round : up.rounds)
    for (const Message& message : round.messages) {
      const double bytes = message.bytes * up.amount(round.of, m);
      sent[static_cast<std::size_t>(message.from)] += bytes;  // up
      sent[static_cast<std::size_t>(message.to)] += bytes;    // the same way down
    }
  for (int rank = 0; rank < size; ++rank)
    EXPECT_NEAR(sent[static_cast<std::size_t>(rank)],
                static_cast<double>(bytes_sent(Collective::all_reduce, Algorithm::tree, 8'000'000, 1, size, rank)),
                1.0);
}

// The closed form is the time of the busiest channel; the simulation shares rates at every event. They agree where
// messages of a round are as long.
TEST(CollectiveOnFabric, ClosedFormIsTheSimulation) {
  TopologySpec spec = test::cpu_spec(16, 2);
  spec.nics_per_node = 2;
  for (const Outside& network :
       {Outside{Torus{{4, 4}}}, Outside{FatTree{{8, 4}, {3}}}, Outside{Dragonfly{4, 4, 2, 1}},
        Outside{DragonflyPlus{4, 4, 2, 2, 2}}, Outside{RailOptimised{4, 4, 2}}, Outside{FullyConnected{}}})
    for (const bool chains : {false, true}) {
      const auto fabric = std::make_shared<const Fabric>(Fabric::make(spec, test::shape(network)).value());
      const Costs costs(fabric, {16, 1.0, 1.0, chains});
      for (const GroupPlacement& placement :
           {GroupPlacement{2, 16, 1}, GroupPlacement{1, 6, 2}, GroupPlacement{2, 3, 1}, GroupPlacement{2, 3, 1, 1}})
        for (const Algorithm algorithm : {Algorithm::ring, Algorithm::recursive_doubling, Algorithm::rabenseifner,
                                          Algorithm::tree, Algorithm::hierarchical, Algorithm::multi_dimensional}) {
          const Schedule all = costs.schedule_of(Collective::all_reduce, algorithm, placement);
          const double simulated = simulated_seconds(*fabric, costs.capacities(), all, m);
          double closed = 0.0;
          for (const RoundCost& cost : round_costs(*fabric, costs.capacities(), all))
            closed += cost.times * (cost.latency + cost.per_byte * all.amount(cost.of, m));
          EXPECT_NEAR(closed / simulated, 1.0, 1e-6) << network.index() << " " << to_string(algorithm);
          if (algorithm != Algorithm::hierarchical) {
            EXPECT_NEAR(costs.seconds(Collective::all_reduce, algorithm, m, placement) / closed, 1.0, 1e-9);
          }
        }
    }
}

// The same of what only some collectives have.
TEST(CollectiveOnFabric, ClosedFormIsTheSimulationOfOthers) {
  TopologySpec spec = test::cpu_spec(16, 2);
  spec.nics_per_node = 2;
  using enum Collective;
  for (const Outside& network :
       {Outside{Torus{{4, 4}}}, Outside{FatTree{{8, 4}, {3}}}, Outside{Dragonfly{4, 4, 2, 1}},
        Outside{DragonflyPlus{4, 4, 2, 2, 2}}, Outside{RailOptimised{4, 4, 2}}, Outside{FullyConnected{}}}) {
    const auto fabric = std::make_shared<const Fabric>(Fabric::make(spec, test::shape(network)).value());
    const Costs costs(fabric, {16, 1.0, 1.0, true});
    for (const GroupPlacement& placement :
         {GroupPlacement{2, 16, 1}, GroupPlacement{1, 6, 2}, GroupPlacement{2, 3, 1}, GroupPlacement{2, 3, 1, 1}})
      for (const auto& [collective, algorithm] : {std::pair{all_reduce, Algorithm::bidirectional_ring},
                                                  {reduce_scatter, Algorithm::bidirectional_ring},
                                                  {all_gather, Algorithm::bidirectional_ring},
                                                  {all_gather, Algorithm::bruck},
                                                  {all_to_all, Algorithm::bruck},
                                                  {all_gather, Algorithm::halving_doubling},
                                                  {reduce_scatter, Algorithm::halving_doubling},
                                                  {broadcast, Algorithm::binomial},
                                                  {broadcast, Algorithm::linear},
                                                  {reduce, Algorithm::linear},
                                                  {all_reduce, Algorithm::binomial},
                                                  {all_to_all, Algorithm::pairwise},
                                                  {all_to_all, Algorithm::hierarchical}}) {
        const Schedule all = costs.schedule_of(collective, algorithm, placement);
        EXPECT_NEAR(
            costs.seconds(collective, algorithm, m, placement) / simulated_seconds(*fabric, costs.capacities(), all, m),
            1.0, 1e-6)
            << network.index() << " " << to_string(collective) << " " << to_string(algorithm);
      }
  }
}

// Two rings over the same links take twice as long as one; one of half the bytes ends when 3/4 … of both have moved: it
// at half rate all along, the other alone for the rest.
TEST(CollectivesAtOnce, ShareLinks) {
  const Fabric ring = test::direct(Torus{{4}}, 4);
  const auto capacities = ring.capacities();
  const Schedule all = schedule_on(ring, Collective::all_gather, Algorithm::ring, {1, 4, 1});
  const double alone = simulated_seconds(ring, capacities, all, m);
  EXPECT_NEAR(alone, 3 * (1e-6 + 0.020), 1e-9);
  EXPECT_NEAR(simulated_together(ring, capacities, std::vector<Running>{{&all, m}})[0], alone, 1e-9);
  const auto equal = simulated_together(ring, capacities, std::vector<Running>{{&all, m}, {&all, m}});
  EXPECT_NEAR(equal[0], 3e-6 + 0.120, 1e-9);
  EXPECT_NEAR(equal[1], equal[0], 1e-12);
  const auto unequal = simulated_together(ring, capacities, std::vector<Running>{{&all, m / 2}, {&all, m}});
  EXPECT_NEAR(unequal[0], 3e-6 + 0.060, 1e-9);
  EXPECT_NEAR(unequal[1], 3e-6 + 0.090, 1e-9);
}

// After 10^7 s a double knows 2 ns: what lasts 10 ps there still ends.
TEST(CollectivesAtOnce, EndFarFromTheirStart) {
  const Fabric ring = test::direct(Torus{{4}}, 4);
  Schedule schedule;
  for (const double share : {1.0, 1e-18})
    schedule.rounds.push_back({"", 1, Round::Kind::stream, Round::Of::whole, {{0, 1, share}}});
  const auto ends = simulated_together(ring, ring.capacities(), std::vector<Running>{{&schedule, 1e15}});
  EXPECT_NEAR(ends[0], 1e7, 1e-3);
}

// Of a large all-to-all some shifts stand for all: on a torus the sample tells what all do within a few percent.
TEST(CollectiveOnFabric, SampledShiftsStandForAll) {
  const Fabric torus = test::direct(Torus{{32, 32}}, 1024);
  const Schedule sampled = schedule_on(torus, Collective::all_to_all, Algorithm::ring, {1, 1024, 1});
  ASSERT_LT(sampled.rounds[0].messages.size(), 1024U * 1023U);
  double bytes = 0.0;
  for (const Message& message : sampled.rounds[0].messages) bytes += message.bytes;
  EXPECT_NEAR(bytes, 1023.0, 1e-6);  // each of 1024 ranks sends 1023/1024
  // Mean distance one way in a ring of 32: 8; 1024 · 8 messages of m/1024 over 32 · 32 channels of a direction: 4 each
  // way.
  const double seconds = round_costs(torus, torus.capacities(), sampled)[0].per_byte * test::rate;
  EXPECT_NEAR(seconds, 4.0, 0.3);
}

}  // namespace
}  // namespace sibyl::fabric

// What libraries choose by their rules, and what the algorithms take that only they have: by hand for m = 4e6 bytes on the
// machine of machine.h.
#include "netmodel/library.h"

#include <gtest/gtest.h>

#include "netmodel/collective/choice/rules.h"
#include "netmodel/explain.h"
#include "tests/unit/netmodel/machine.h"

namespace sibyl::library_choice {
namespace {

using enum Collective;
constexpr double m = 4e6;
constexpr std::int64_t kib = 1024;

double time_of(Algorithm algorithm, GroupPlacement placement, Collective collective) {
  const Network network = test::straight_network(placement.nodes, placement.ranks_per_node, algorithm);
  return network.collective(collective, Bytes{m}, placement).time.time.value();
}

#define EXPECT_MS(expression, milliseconds) EXPECT_NEAR(expression, (milliseconds)*1e-3, (milliseconds)*1e-8)

// Of four a part with the neighbour and two with the rank two away. In nodes of two the first stays inside; the second
// goes over one NIC from both. Three ranks do as in a ring, or as Bruck.
TEST(HalvingDoublingTime, HalvesOfRabenseifner) {
  for (const Collective half : {reduce_scatter, all_gather}) {
    EXPECT_MS(time_of(Algorithm::halving_doubling, {1, 4, 1}, half), 10.010 + 20.010);
    EXPECT_MS(time_of(Algorithm::halving_doubling, {2, 2, 1}, half), 1.001 + 40.010);
    EXPECT_MS(time_of(Algorithm::halving_doubling, {1, 3, 1}, half), 2 * (0.010 + 40.0 / 3));
  }
}

TEST(BinomialTime, AllInOneMessage) {
  EXPECT_MS(time_of(Algorithm::binomial, {1, 4, 1}, broadcast), 2 * 40.010);
  EXPECT_MS(time_of(Algorithm::binomial, {1, 5, 1}, reduce), 3 * 40.010);
  EXPECT_MS(time_of(Algorithm::binomial, {1, 4, 1}, all_reduce), 4 * 40.010);
}

// Three messages leave the root; of two nodes of two ranks two of them by the NIC.
TEST(LinearTime, ThroughTheRootsPort) {
  EXPECT_MS(time_of(Algorithm::linear, {1, 4, 1}, broadcast), 0.010 + 3 * 40.0);
  EXPECT_MS(time_of(Algorithm::linear, {4, 1, 1}, reduce), 0.001 + 3 * 4.0);
  EXPECT_MS(time_of(Algorithm::linear, {2, 2, 1}, broadcast), 0.010 + 2 * 40.0);
}

// Three rounds of m/4. Of two nodes of two ranks one of a node's leaves it in the first and the last round, both in the
// second.
TEST(PairwiseTime, RoundByRound) {
  EXPECT_MS(time_of(Algorithm::pairwise, {1, 4, 1}, all_to_all), 3 * 10.010);
  EXPECT_MS(time_of(Algorithm::pairwise, {4, 1, 1}, all_to_all), 3 * 1.001);
  EXPECT_MS(time_of(Algorithm::pairwise, {2, 2, 1}, all_to_all), 2 * 10.010 + 20.010);
}

Algorithm chosen(Library library, Collective collective, std::int64_t bytes, int ranks) {
  return collective::choose(collective::rules_of(library), collective, bytes, ranks);
}

// Sizes are those at which coll_tuned_decision_fixed.c changes: of all-gathers and all-to-alls for each rank.
TEST(OpenMpiRules, ByRanksAndSize) {
  const auto rule = [](Collective collective, std::int64_t bytes, int ranks) {
    return chosen(Library::open_mpi, collective, bytes, ranks);
  };
  EXPECT_EQ(rule(all_reduce, 8 * kib - 1, 8), Algorithm::recursive_doubling);
  EXPECT_EQ(rule(all_reduce, 8 * kib, 8), Algorithm::rabenseifner);
  EXPECT_EQ(rule(all_reduce, 5000, 3), Algorithm::ring);
  EXPECT_EQ(rule(all_reduce, 300'000, 3), Algorithm::rabenseifner);
  EXPECT_EQ(rule(all_reduce, 100 * kib, 200), Algorithm::binomial);
  EXPECT_EQ(rule(all_reduce, 1 << 30, 100'000), Algorithm::rabenseifner);
  EXPECT_EQ(rule(all_gather, 1 << 30, 16), Algorithm::halving_doubling);
  EXPECT_EQ(rule(all_gather, 64 * 511, 64), Algorithm::halving_doubling);
  EXPECT_EQ(rule(all_gather, 64 * 512, 64), Algorithm::ring);
  EXPECT_EQ(rule(reduce_scatter, 256 * kib - 1, 8), Algorithm::halving_doubling);
  EXPECT_EQ(rule(reduce_scatter, 256 * kib, 8), Algorithm::ring);
  EXPECT_EQ(rule(broadcast, 1 << 20, 64), Algorithm::binomial);
  EXPECT_EQ(rule(broadcast, 64 * kib, 8), Algorithm::linear);
  EXPECT_EQ(rule(all_to_all, 16 * 3, 16), Algorithm::ring);
  EXPECT_EQ(rule(all_to_all, 16 * 511, 16), Algorithm::bruck);
  EXPECT_EQ(rule(all_to_all, 16 * 512, 16), Algorithm::ring);
  EXPECT_EQ(rule(all_to_all, 128 * 256 * kib, 128), Algorithm::pairwise);
}

TEST(MpichRules, BySize) {
  const auto rule = [](Collective collective, std::int64_t bytes, int ranks) {
    return chosen(Library::mpich, collective, bytes, ranks);
  };
  EXPECT_EQ(rule(all_reduce, 2 * kib, 8), Algorithm::recursive_doubling);
  EXPECT_EQ(rule(all_reduce, 2 * kib + 1, 8), Algorithm::rabenseifner);
  EXPECT_EQ(rule(all_gather, 512 * kib - 1, 8), Algorithm::halving_doubling);
  EXPECT_EQ(rule(all_gather, 512 * kib, 8), Algorithm::ring);
  EXPECT_EQ(rule(all_gather, 80 * kib - 1, 6), Algorithm::bruck);
  EXPECT_EQ(rule(all_gather, 80 * kib, 6), Algorithm::ring);
  EXPECT_EQ(rule(broadcast, 12 * kib - 1, 8), Algorithm::binomial);
  EXPECT_EQ(rule(broadcast, 12 * kib, 8), Algorithm::tree);
  EXPECT_EQ(rule(broadcast, 12 * kib, 7), Algorithm::binomial);
  EXPECT_EQ(rule(all_to_all, 8 * 256, 8), Algorithm::bruck);
  EXPECT_EQ(rule(all_to_all, 8 * 257, 8), Algorithm::ring);
  EXPECT_EQ(rule(all_to_all, 7 * 256, 7), Algorithm::ring);
  EXPECT_EQ(rule(all_to_all, 8 * (32 * kib + 1), 8), Algorithm::pairwise);
}

// Every library says something of every collective, whatever the size, that its algorithm offers.
TEST(LibraryRules, AreComplete) {
  for (const Library library : {Library::sibyl, Library::open_mpi, Library::mpich, Library::gloo})
    for (const Collective collective :
         {all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, send_receive})
      for (const int ranks : {2, 3, 4, 7, 8, 12, 16, 33, 64, 100, 256, 1000, 5000})
        for (std::int64_t bytes = 1; bytes < std::int64_t{1} << 40; bytes *= 3) {
          const Algorithm algorithm = chosen(library, collective, bytes, ranks);
          ASSERT_TRUE(collective::runs(collective, algorithm))
              << to_string(library) << " " << to_string(collective) << " " << ranks << " " << bytes;
        }
}

TEST(Libraries, AreNamed) {
  for (const Library library :
       {Library::automatic, Library::sibyl, Library::nccl, Library::open_mpi, Library::mpich, Library::gloo})
    EXPECT_EQ(*parse_library(to_string(library)), library);
  EXPECT_FALSE(parse_library("table"));
  EXPECT_FALSE(parse_library("mvapich"));
}

Network on_eight(std::vector<CollectiveSample> samples = {}) {
  return test::straight_network(8, 1, Algorithm::automatic, std::move(samples));
}

TEST(NetworkRunning, ALibraryChoosesByItsRules) {
  const Network mpich = on_eight().running({Library::mpich});
  const CollectiveEstimate few = mpich.collective(all_reduce, Bytes{2048}, {1, 8, 1});
  EXPECT_EQ(few.algorithm, Algorithm::recursive_doubling);
  EXPECT_NEAR(few.time.time.value(), 3 * (10e-6 + 2048e-8), 1e-12);
  EXPECT_EQ(mpich.collective(all_reduce, Bytes{m}, {1, 8, 1}).algorithm, Algorithm::rabenseifner);
  EXPECT_EQ(mpich.explain(all_reduce, Bytes{m}, {1, 8, 1}).why, "mpich chooses so by the ranks and the size");
  // By name nothing changes, nor with the communicator's own rules between CPU ranks.
  EXPECT_EQ(mpich.collective(all_reduce, Bytes{m}, {1, 8, 1}, Algorithm::ring).algorithm, Algorithm::ring);
  for (const double bytes : {1e3, 1e5, 1e7})
    EXPECT_EQ(on_eight().running({Library::sibyl}).collective(all_reduce, Bytes{bytes}, {1, 8, 1}).time.time,
              on_eight().collective(all_reduce, Bytes{bytes}, {1, 8, 1}).time.time);
  EXPECT_EQ(on_eight().running({Library::gloo}).collective(all_reduce, Bytes{m}, {1, 8, 1}).algorithm, Algorithm::gloo);
  EXPECT_EQ(on_eight().running({Library::nccl}).collective(all_reduce, Bytes{1e9}, {1, 8, 1}).algorithm,
            Algorithm::ring);
}

// It stays so where the machine is cut down or changed.
TEST(NetworkRunning, OutlivesChanges) {
  const Network mpich = on_eight().running({Library::mpich});
  TopologySpec faster = mpich.topology().spec();
  faster.nic_bandwidth *= 2;
  for (const Result<Network>& changed : {mpich.resized(4, 1), mpich.with_links(faster), mpich.uncontended()})
    EXPECT_EQ(changed->collective(all_reduce, Bytes{m}, {1, 4, 1}).algorithm, Algorithm::rabenseifner);
}

// Recursive doubling of 1 MB takes four ranks 2 (10 us + 10 ms); a ring of 1.1 MB would take 6 (10 us + 2.75 ms) less: a
// table that changes too late is held at what it took before.
TEST(NetworkRunning, AUsersTableNeverGetsFasterWithBytes) {
  LibraryChoice own{Library::table, {{all_reduce, 4, 1'000'000, Algorithm::recursive_doubling},
                                     {all_reduce, ChoiceRule::any_ranks, ChoiceRule::any_size, Algorithm::ring}}};
  const Network network = on_eight().running(own);
  const auto asked = [&](double bytes, int nodes) { return network.collective(all_reduce, Bytes{bytes}, {1, nodes, 1}); };
  EXPECT_EQ(asked(1e6, 4).algorithm, Algorithm::recursive_doubling);
  EXPECT_NEAR(asked(1e6, 4).time.time.value(), 0.02002, 1e-9);
  EXPECT_EQ(asked(1.1e6, 4).algorithm, Algorithm::ring);
  EXPECT_NEAR(asked(1.1e6, 4).time.time.value(), 0.02002, 1e-9);
  EXPECT_NEAR(asked(4e6, 4).time.time.value(), 6 * 0.01001, 1e-9);
  EXPECT_EQ(asked(1e3, 8).algorithm, Algorithm::ring);
  EXPECT_EQ(network.explain(all_reduce, Bytes{1e3}, {1, 8, 1}).why,
            "the cluster's table says so by the ranks and the size");
  // What it does not say is chosen as ever.
  EXPECT_EQ(network.collective(all_gather, Bytes{m}, {1, 8, 1}).algorithm, Algorithm::ring);
}

// What the communicator chose by itself when it was measured says nothing of MPICH; its Rabenseifner does.
TEST(NetworkRunning, UsesSamplesOfAlgorithmsByName) {
  const auto sample = [](Algorithm algorithm, double seconds) {
    return CollectiveSample{all_reduce, algorithm, {1, 8, 1}, Bytes{m}, Seconds{seconds}, 0.03, "test"};
  };
  const auto asked = [](std::vector<CollectiveSample> samples) {
    return on_eight(std::move(samples)).running({Library::mpich}).collective(all_reduce, Bytes{m}, {1, 8, 1}).time;
  };
  EXPECT_EQ(asked({sample(Algorithm::automatic, 0.5)}).provenance, Provenance::estimated);
  EXPECT_NEAR(asked({sample(Algorithm::automatic, 0.5)}).time.value(), 2 * (0.030 + 35.0) * 1e-3, 1e-8);
  EXPECT_EQ(asked({sample(Algorithm::automatic, 0.5), sample(Algorithm::rabenseifner, 0.2)}).time, Seconds{0.2});
}

}  // namespace
}  // namespace sibyl::library_choice

// Why an algorithm: what is said must be so, whatever was measured elsewhere on the same machine.
#include "netmodel/explain.h"

#include <gtest/gtest.h>

#include "netmodel/library.h"
#include "tests/unit/netmodel/machine.h"

namespace sibyl::explanation {
namespace {

using enum Collective;
constexpr GroupPlacement in_a_node{8, 1, 1}, of_four{4, 1, 1}, between_nodes{8, 2, 1};

// Timed in a node alone, as shipped calibrations of GPUs are.
Network gpus(Algorithm timed = Algorithm::automatic) {
  TopologySpec spec = test::cpu_spec(2, 8);
  spec.device_link = {LinkKind::nvswitch, BytesPerSecond{300e9}, Seconds{2e-6}};
  std::vector<CollectiveSample> samples;
  for (const Collective collective : {all_reduce, reduce_scatter, all_gather, all_to_all})
    for (const GroupPlacement& placement : {of_four, in_a_node})
      samples.push_back({collective, timed, placement, Bytes{1e6}, Seconds{1e-4}, 0.01, "test"});
  return {Topology::make(spec).value(), {}, std::move(samples), Algorithm::automatic};
}

std::string why(const Network& network, Collective collective, const GroupPlacement& placement,
                Algorithm asked = Algorithm::automatic) {
  return network.explain(collective, Bytes{2e6}, placement, asked).why;
}

TEST(Why, SpeaksOfMeasuringOnlyWhereSamplesAnswered) {
  const Network on = gpus();
  for (const Collective collective : {reduce_scatter, all_gather, all_to_all}) {
    EXPECT_EQ(why(on, collective, in_a_node),
              "the library chose when it was measured; by formula this one is taken for it");
    EXPECT_EQ(why(on, collective, between_nodes), "it is what the library runs for this collective");
    EXPECT_FALSE(on.explain(collective, Bytes{2e6}, between_nodes).samples);
  }
  EXPECT_EQ(why(on, all_reduce, in_a_node),
            "the library chose when it was measured; by formula this one is the faster of ring and tree");
  EXPECT_EQ(why(on, all_reduce, between_nodes), "it is the faster of ring and tree, as a GPU library chooses");
  for (const Collective collective : {broadcast, reduce})
    EXPECT_EQ(why(on, collective, in_a_node),
              "it stands for the ring of chunks that a GPU library runs, of which there is no formula");
  EXPECT_EQ(why(on, send_receive, in_a_node), "it is the only one for this collective");
}

TEST(Why, OfAlgorithmsThatWereTimedByName) {
  const Network on = gpus(Algorithm::ring);
  EXPECT_EQ(why(on, all_gather, in_a_node), "it is the fastest of those that were measured");
  EXPECT_EQ(why(on, all_gather, between_nodes), "it is the fastest by formula of those that were measured elsewhere");
  EXPECT_EQ(why(on, all_gather, in_a_node, Algorithm::ring), "it was asked for");
  EXPECT_EQ(why(on, all_gather, in_a_node, Algorithm::tree), "what was asked for does not offer this collective");
}

TEST(Why, OfTheCommunicator) {
  const Network bare = test::straight_network(4, 2, Algorithm::automatic);
  EXPECT_EQ(why(bare, all_reduce, {2, 4, 1}), "the communicator between CPUs chooses so by the size");
  for (const Collective collective : {reduce_scatter, all_gather, broadcast, reduce, all_to_all})
    EXPECT_EQ(why(bare, collective, {2, 4, 1}), "it is what the library runs for this collective");
}

// NCCL between CPU ranks is reckoned by formula alone, whatever was measured of the communicator.
TEST(Why, OfAnotherLibrary) {
  const CollectiveSample timed{all_gather, Algorithm::ring, {1, 4, 1}, Bytes{1e6}, Seconds{0.1}, 0.01, "test"};
  const Network nccl = test::straight_network(4, 1, Algorithm::automatic, {timed}).running({Library::nccl});
  EXPECT_EQ(why(nccl, all_reduce, {1, 4, 1}), "it is the faster of ring and tree, as NCCL chooses");
  EXPECT_EQ(why(nccl, all_gather, {1, 4, 1}), "it is what the library runs for this collective");
  EXPECT_FALSE(nccl.explain(all_gather, Bytes{1e6}, {1, 4, 1}).samples);
  EXPECT_EQ(why(nccl, broadcast, {1, 4, 1}),
            "it stands for the ring of chunks that NCCL runs, of which there is no formula");
  const Network own = gpus().running({Library::table, {{all_gather, 8, 1'000'000, Algorithm::ring}}});
  EXPECT_EQ(why(own, all_gather, in_a_node),
            "the cluster's table does not say; it is what the library runs for this collective");
  EXPECT_EQ(own.explain(all_gather, Bytes{1e6}, in_a_node).why,
            "the cluster's table says so by the ranks and the size");
}

}  // namespace
}  // namespace sibyl::explanation

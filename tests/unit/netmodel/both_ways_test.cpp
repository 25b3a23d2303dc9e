// Messages that were timed both ways at once are what collectives consist of; those of one way are what a pipeline
// sends. On the machine of machine.h, whose messages both ways take 20 us + bytes / (50 MB/s) between nodes and 3 us +
// bytes / (400 MB/s) between the only two ranks of a node.
#include <gtest/gtest.h>

#include "tests/unit/netmodel/machine.h"

namespace sibyl {
namespace {

constexpr double vector_bytes = 4e6;

Network slow_both_ways(int nodes, int devices_per_node, Algorithm algorithm = Algorithm::ring) {
  std::vector<PointToPointSample> samples = test::straight_lines();
  for (double size = 1; size <= 1 << 24; size *= 4) {
    samples.push_back({false, 1, Bytes{size}, Seconds{20e-6 + size / 50e6}, 0.0, true});
    samples.push_back({true, 1, Bytes{size}, Seconds{3e-6 + size / 400e6}, 0.0, true});
  }
  return {Topology::make(test::cpu_spec(nodes, devices_per_node)).value(), std::move(samples), {}, algorithm};
}

double time_of(const Network& network, Collective collective, GroupPlacement placement) {
  return network.collective(collective, Bytes{vector_bytes}, placement).time.time.value();
}

// Rings of two: 2 (a + m/2 b).
TEST(BothWays, IsWhatARoundTakes) {
  EXPECT_NEAR(time_of(slow_both_ways(2, 1), Collective::all_reduce, {1, 2, 1}), 2 * (20e-6 + vector_bytes / 2 / 50e6),
              1e-8);
  EXPECT_NEAR(time_of(slow_both_ways(1, 2), Collective::all_reduce, {2, 1, 1}), 2 * (3e-6 + vector_bytes / 2 / 400e6),
              1e-8);
  EXPECT_NEAR(time_of(slow_both_ways(2, 1), Collective::send_receive, {1, 2, 1}), 20e-6 + vector_bytes / 50e6, 1e-8);
}

// Nobody is sent anything back: of two a + m b.
TEST(BothWays, IsNotWhatGoesDownATree) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce})
    for (const Algorithm algorithm : {Algorithm::tree, Algorithm::binomial, Algorithm::linear}) {
      EXPECT_NEAR(time_of(slow_both_ways(2, 1, algorithm), collective, {1, 2, 1}), 10e-6 + vector_bytes / 100e6, 1e-8);
      EXPECT_NEAR(time_of(slow_both_ways(1, 2, algorithm), collective, {2, 1, 1}), 1e-6 + vector_bytes / 1e9, 1e-8);
    }
}

TEST(BothWays, IsNotWhatAPipelineSends) {
  const Network network = slow_both_ways(2, 2);
  EXPECT_NEAR(network.point_to_point(Bytes{vector_bytes}, false).time.value(), 10e-6 + vector_bytes / 100e6, 1e-8);
  EXPECT_NEAR(network.point_to_point(Bytes{vector_bytes}, true).time.value(), 1e-6 + vector_bytes / 1e9, 1e-8);
}

// Twice as fast a NIC halves what both ways take beyond their own shortest.
TEST(BothWays, IsCarriedToOtherLinks) {
  TopologySpec faster = test::cpu_spec(2, 1);
  faster.nic_bandwidth = faster.nic_bandwidth * 2;
  const Network network = slow_both_ways(2, 1).with_links(faster).value();
  EXPECT_NEAR(time_of(network, Collective::all_reduce, {1, 2, 1}), 2 * (20e-6 + vector_bytes / 2 / 100e6), 1e-7);
}

}  // namespace
}  // namespace sibyl

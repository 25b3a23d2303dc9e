// Networks with other links than those that were measured.
#include <gtest/gtest.h>

#include "machine.h"

namespace sibyl {
namespace {

constexpr GroupPlacement inside{4, 1, 1}, across{1, 4, 1};
constexpr Bytes message{1 << 20};

Network changed(const Network& network, auto change) {
  TopologySpec spec = network.topology().spec();
  change(spec);
  return network.with_links(spec).value();
}

// Inside a node a message takes 1 us + bytes / (1 GB/s); twice as fast and half as late: 0.5 us + bytes / (2 GB/s).
// What the shortest message of 1 byte takes is counted as latency.
TEST(WhatIf, MeasuredMessagesInsideFollowTheLink) {
  const Network network = changed(test::straight_network(4, 4, Algorithm::ring), [](TopologySpec& s) {
    s.device_link.bandwidth *= 2;
    s.device_link.latency *= 0.5;
  });
  const Estimate small = network.point_to_point(Bytes{1}, true), large = network.point_to_point(message, true);
  EXPECT_NEAR(small.time.value(), 0.5e-6 + 1 / 2e9, 1e-3 * 0.5e-6);
  EXPECT_NEAR(large.time.value(), 0.5e-6 + message.value() / 2e9, 1e-3 * large.time.value());
}

// Between nodes 10 us + bytes / (100 MB/s), the 10 us being two NICs of 5 us: with 1 us each, 2 us.
TEST(WhatIf, MeasuredMessagesAcrossFollowTheNic) {
  const Network network = changed(test::straight_network(4, 4, Algorithm::ring), [](TopologySpec& s) {
    s.nic_bandwidth = BytesPerSecond{400e6};
    s.nic_latency = Seconds{1e-6};
  });
  const Estimate large = network.point_to_point(message, false);
  EXPECT_NEAR(large.time.value(), 2e-6 + message.value() / 400e6, 1e-3 * large.time.value());
  EXPECT_NEAR(network.point_to_point(message, true).time.value(), 1e-6 + message.value() / 1e9, 1e-9);
}

// A timed all-reduce that took 3 times the formula's time takes 3 times it on the changed network too: twice the
// bandwidth and half the latency of all links halve it. The sample is long, so rounding of the first byte is nothing.
TEST(WhatIf, MeasuredCollectivesAreCarriedByTheFormula) {
  const Seconds formula =
      test::straight_network(4, 1, Algorithm::ring).collective(Collective::all_reduce, message, across).time.time;
  const CollectiveSample slow{Collective::all_reduce, Algorithm::ring, across, message, formula * 3, 0.0, {}};
  const Network measured = test::straight_network(4, 1, Algorithm::ring, {slow});
  const Network network = changed(measured, [](TopologySpec& s) {
    s.nic_bandwidth *= 2;
    s.nic_latency *= 0.5;
  });
  const Estimate before = measured.collective(Collective::all_reduce, message, across).time;
  const Estimate after = network.collective(Collective::all_reduce, message, across).time;
  EXPECT_NEAR(after.time.value(), 1.5 * formula.value(), 1e-3 * formula.value());
  EXPECT_EQ(before.provenance, Provenance::measured);
  EXPECT_EQ(after.provenance, Provenance::interpolated);
  EXPECT_GT(after.relative_error, before.relative_error);
}

TEST(WhatIf, GroupsThatDoNotCrossTheChangedLinkStayAsTheyAre) {
  const Network network = test::straight_network(4, 4, Algorithm::ring);
  const Network faster_nic = changed(network, [](TopologySpec& s) { s.nic_bandwidth *= 8; });
  const Estimate a = network.collective(Collective::all_reduce, message, inside).time;
  const Estimate b = faster_nic.collective(Collective::all_reduce, message, inside).time;
  EXPECT_EQ(a.time, b.time);
  EXPECT_EQ(a.relative_error, b.relative_error);
  EXPECT_LT(faster_nic.collective(Collective::all_reduce, message, across).time.time,
            network.collective(Collective::all_reduce, message, across).time.time / 4);
}

// Eight times is three octaves: too far to be called anything but a guess.
TEST(WhatIf, FarChangesAreGuesses) {
  const Network network =
      changed(test::straight_network(4, 1, Algorithm::ring), [](TopologySpec& s) { s.nic_bandwidth *= 8; });
  EXPECT_EQ(network.point_to_point(message, false).provenance, Provenance::estimated);
}

TEST(WhatIf, NoChangeChangesNothing) {
  const Network network = test::straight_network(2, 2, Algorithm::ring);
  const Network same = changed(network, [](TopologySpec&) {});
  const GroupPlacement all{2, 2, 1};
  const Estimate a = network.collective(Collective::all_reduce, message, all).time;
  const Estimate b = same.collective(Collective::all_reduce, message, all).time;
  EXPECT_NEAR(a.time.value(), b.time.value(), 1e-12);
  EXPECT_EQ(a.relative_error, b.relative_error);
}

// What resizing a changed network gives is as unsure as before.
TEST(WhatIf, ResizingKeepsTheDoubt) {
  const Network network =
      changed(test::straight_network(4, 1, Algorithm::ring), [](TopologySpec& s) { s.nic_bandwidth *= 2; });
  EXPECT_EQ(network.resized(8, 1)->point_to_point(message, false).provenance,
            network.point_to_point(message, false).provenance);
}

TEST(WhatIf, LinksThatCannotBeAreRefused) {
  const Network network = test::straight_network(2, 1, Algorithm::ring);
  TopologySpec spec = network.topology().spec();
  spec.oversubscription = 0.5;
  EXPECT_FALSE(network.with_links(spec).has_value());
}

}  // namespace
}  // namespace sibyl

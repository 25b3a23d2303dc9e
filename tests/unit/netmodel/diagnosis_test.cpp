// A healthy network of 1 GB/s and 10 us, then one thing wrong with it at a time.
#include "netmodel/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/netmodel/machine.h"

namespace sibyl {
namespace {

using testing::HasSubstr;
using Kind = Finding::Kind;

PointToPointSample timed_message(bool same_node, int pairs, double bytes, double seconds) {
  return {same_node, pairs, Bytes{bytes}, Seconds{seconds}, 0.05};
}

// A ring of n nodes in 2 (n - 1) (10 us + m/n ns).
CollectiveSample all_reduce(double bytes, int nodes, double factor = 1.0) {
  const double time = 2 * (nodes - 1) * (10e-6 + bytes / nodes * 1e-9);
  return {
      Collective::all_reduce, Algorithm::automatic, {1, nodes, 1}, Bytes{bytes}, Seconds{time * factor}, 0.05, "test"};
}

MeasuredNetwork healthy() {
  MeasuredNetwork network;
  network.machine = test::cpu_spec(4, 2);
  network.rated = BytesPerSecond{1.0e9};
  for (double bytes = 1; bytes <= 1e8; bytes *= 10) {
    network.messages.push_back(timed_message(true, 1, bytes, 1e-6 + bytes * 1e-10));
    network.messages.push_back(timed_message(false, 1, bytes, 10e-6 + bytes * 1e-9));
    network.messages.push_back(timed_message(false, 2, bytes, 10e-6 + 2 * bytes * 1e-9));
  }
  network.collectives = {all_reduce(1e8, 4)};
  return network;
}

std::vector<Finding> limits_of(const MeasuredNetwork& network) {
  std::vector<Finding> limits;
  for (const Finding& finding : diagnose(network))
    if (finding.kind == Kind::limit) limits.push_back(finding);
  return limits;
}

TEST(Diagnosis, AHealthyNetworkHasNoLimits) {
  for (const Finding& limit : limits_of(healthy())) ADD_FAILURE() << limit.what;
  const auto all = diagnose(healthy());
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().kind, Kind::unknown);  // a slow pair is not seen with four nodes
}

// A shaped wire lets 16 KiB pass at once, twice as fast as it is; what 100 MB take says what it is.
TEST(Diagnosis, ABurstIsNotTheRate) {
  MeasuredNetwork network = healthy();
  network.messages.push_back(timed_message(false, 1, 16384, 8e-6));
  for (const Finding& finding : diagnose(network)) EXPECT_THAT(finding.what, testing::Not(HasSubstr("2.05 GB/s")));
  for (const Finding& limit : limits_of(network)) ADD_FAILURE() << limit.what;
}

// Rated at 4 GB/s it reaches a quarter, and that fast an adapter does not take 10 us... 16 us it would.
TEST(Diagnosis, BelowWhatItIsRatedAt) {
  MeasuredNetwork network = healthy();
  network.rated = BytesPerSecond{4e9};
  const auto limits = limits_of(network);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_THAT(limits[0].what, HasSubstr("25 %"));
  for (PointToPointSample& s : network.messages)
    if (!s.same_node) s.time += Seconds{6e-6};
  const auto slower = limits_of(network);
  ASSERT_EQ(slower.size(), 2U);
  EXPECT_THAT(slower[1].advice, HasSubstr("kernel"));
}

TEST(Diagnosis, SlowerInsideThanBetween) {
  MeasuredNetwork network = healthy();
  for (PointToPointSample& s : network.messages)
    if (s.same_node) s.time = s.time * 20;
  const auto limits = limits_of(network);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_THAT(limits[0].advice, HasSubstr("share memory"));
}

TEST(Diagnosis, SlowerTogether) {
  MeasuredNetwork network = healthy();
  for (PointToPointSample& s : network.messages)
    if (s.pairs == 2) s.time = s.time * 1.5;
  const auto limits = limits_of(network);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_THAT(limits[0].what, HasSubstr("2 messages of a node at once"));
}

TEST(Diagnosis, SlowerOverManyNodes) {
  MeasuredNetwork network = healthy();
  network.collectives.push_back(all_reduce(1e7, 4, 2.0));
  const auto limits = limits_of(network);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_THAT(limits[0].what, HasSubstr("2.00 times"));
  EXPECT_THAT(limits[0].advice, HasSubstr("oversubscription"));
  network.collectives = {all_reduce(1e7, 2, 2.0)};
  ASSERT_EQ(limits_of(network).size(), 1U);
  EXPECT_THAT(limits_of(network)[0].advice, HasSubstr("half duplex"));
}

TEST(Diagnosis, UnsteadyTimes) {
  MeasuredNetwork network = healthy();
  for (PointToPointSample& s : network.messages) s.spread = 0.5;
  const auto limits = limits_of(network);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_THAT(limits[0].what, HasSubstr("50 %"));
}

TEST(Diagnosis, NothingMeasured) {
  const auto findings = diagnose({test::cpu_spec(1, 1), {}, {}, {}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, Kind::unknown);
}

}  // namespace
}  // namespace sibyl

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
  for (int from = 0; from < 12; from += 2)
    for (int to = 0; to < 12; to += 2)
      if (from != to) network.pairs.push_back({from, to, false, Bytes{1e6}, Seconds{1e-3}, 0.05});
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
  EXPECT_EQ(all.front().kind, Kind::fine);
}

TEST(Diagnosis, WithoutSinglePairsASlowOneIsNotSeen) {
  MeasuredNetwork network = healthy();
  network.pairs.clear();
  EXPECT_EQ(diagnose(network).front().kind, Kind::unknown);
}

void slow_down(MeasuredNetwork& network, double factor, bool (*which)(const PairSample&)) {
  for (PairSample& s : network.pairs)
    if (which(s)) s.time *= factor;
}

// Of one pair alone there is no median to be slower than.
TEST(Diagnosis, OnePairIsNotSlowAgainstItself) {
  MeasuredNetwork network = healthy();
  network.pairs = {{0, 2, false, Bytes{1e6}, Seconds{1e-3}, 0.05}, {2, 0, false, Bytes{1e6}, Seconds{3e-3}, 0.05}};
  const auto limits = limits_of(network);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_THAT(limits[0].what, HasSubstr("3.00 times as long from rank 2 to rank 0 as back"));
}

TEST(Diagnosis, ASlowPair) {
  MeasuredNetwork network = healthy();
  slow_down(network, 1.5, [](const PairSample& s) { return s.from + s.to == 6 && s.from * s.to == 8; });
  const auto limits = limits_of(network);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_THAT(limits[0].what, HasSubstr("from rank 2 to rank 4 takes 1.50 times the median"));
  EXPECT_THAT(limits[0].advice, HasSubstr("the way between these two"));
}

TEST(Diagnosis, ANodeAllOfWhosePairsAreSlow) {
  MeasuredNetwork network = healthy();
  slow_down(network, 1.5, [](const PairSample& s) { return s.from == 6 || s.to == 6; });
  const auto limits = limits_of(network);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_THAT(limits[0].what, HasSubstr("all others of rank 6 are slow"));
}

// 1.3 times the median is as may be, and back it is 1.3 times less: 1.69 between the two is not.
TEST(Diagnosis, SlowerOneWay) {
  MeasuredNetwork network = healthy();
  slow_down(network, 1.3, [](const PairSample& s) { return s.from == 4 && s.to == 0; });
  slow_down(network, 1 / 1.3, [](const PairSample& s) { return s.from == 0 && s.to == 4; });
  const auto limits = limits_of(network);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_THAT(limits[0].what, HasSubstr("takes 1.69 times as long from rank 4 to rank 0 as back"));
}

// Two sockets of three ranks each, all messages between which take half as long again: no pair is slower than others
// that are as far, but the way between the sockets is.
TEST(Diagnosis, SocketsThatAreFarFromEachOther) {
  MeasuredNetwork network = healthy();
  for (int from = 0; from < 6; ++from)
    for (int to = 0; to < 6; ++to) {
      const bool near = from / 3 == to / 3;
      if (from != to)
        network.pairs.push_back({from, to, true, Bytes{1e6}, Seconds{near ? 1e-4 : 1.5e-4}, 0.05,
                                 near ? Nearness::memory : Nearness::node});
    }
  const auto limits = limits_of(network);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_THAT(limits[0].what, HasSubstr("100 us between ranks at one memory, 150 us between ranks in two sockets"));
  slow_down(network, 1 / 1.5, [](const PairSample& s) { return s.near == Nearness::node; });
  EXPECT_TRUE(limits_of(network).empty());
  slow_down(network, 2.0, [](const PairSample& s) { return s.same_node && s.from + s.to == 9; });
  EXPECT_THAT(limits_of(network).at(0).what, HasSubstr("from rank 4 to rank 5 takes 2.00 times the median"));
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

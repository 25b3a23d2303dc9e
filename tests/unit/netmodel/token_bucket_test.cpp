// A wire of 8 ns a byte behind a token bucket of 32 KiB, whose messages are there 20 us after they were sent: alone,
// after a pause, s bytes take 20 us, and 8 ns for each byte beyond 32 KiB. The whole bucket is worth 262 us of the
// wire.
#include "netmodel/token_bucket.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "netmodel/curve.h"
#include "tests/unit/netmodel/machine.h"

namespace sibyl {
namespace {

constexpr double latency = 20e-6, pace = 8e-9, burst = 32768;
constexpr TokenBucket bucket{pace, burst* pace};

double alone(double bytes, double of_burst = burst, double of_pace = pace) {
  return latency + std::max(0.0, bytes - of_burst) * of_pace;
}

double rounds(double bytes, int times) { return bucket.rounds(alone(bytes), bytes, times).value(); }

// What arrives when, by the definition of a bucket: what was sent since any moment is at most the burst and what the
// wire carried since then, sent as early as that allows, each message when the one before has arrived.
double by_definition(const std::vector<double>& messages, double of_burst, double of_pace) {
  double now = 0.0, tokens = of_burst, since = 0.0;
  for (const double bytes : messages) {
    tokens = std::min(of_burst, tokens + (now - since) / of_pace);
    const double waits = std::max(0.0, bytes - tokens) * of_pace;
    tokens = std::max(0.0, tokens - bytes);
    since = now + waits;
    now += waits + latency;
  }
  return now;
}

TEST(TokenBucket, OneMessageFindsItFull) {
  EXPECT_DOUBLE_EQ(rounds(4096, 1), 20e-6);
  EXPECT_DOUBLE_EQ(rounds(65536, 1), 20e-6 + 32768 * 8e-9);
}

// 64 KiB: the bucket is empty when the first has left; in 20 us of latency the wire makes good 2,500 bytes, so each of
// the others takes what the wire takes for 64 KiB. 3 messages: 20 us + (3 x 65536 - 32768) x 8 ns.
TEST(TokenBucket, HelpsLongMessagesOnce) { EXPECT_DOUBLE_EQ(rounds(65536, 3), 20e-6 + (3 * 65536 - 32768) * 8e-9); }

// 16 KiB take the wire 131 us and 20 with a bucket that holds them. Two find it full enough; of six the wire carries
// 98304 - 32768 bytes.
TEST(TokenBucket, HelpsShortMessagesUntilItIsEmpty) {
  EXPECT_DOUBLE_EQ(rounds(16384, 2), 2 * 20e-6);
  EXPECT_DOUBLE_EQ(rounds(16384, 6), 20e-6 + (6 * 16384 - 32768) * 8e-9);
}

// 1 KiB takes the wire 8 us, less than its latency: the bucket stays full.
TEST(TokenBucket, IsFullAgainWhereMessagesAreShort) { EXPECT_DOUBLE_EQ(rounds(1024, 100), 100 * 20e-6); }

TEST(TokenBucket, RoundsAreWhatTheDefinitionSays) {
  EXPECT_TRUE(rc::check("of messages alike, and of any", [] {
    const double size = *rc::gen::inRange(1, 300'000);
    const int times = *rc::gen::inRange(1, 30);
    const std::vector<double> alike(static_cast<std::size_t>(times), size);
    RC_ASSERT(std::abs(rounds(size, times) / by_definition(alike, burst, pace) - 1) < 1e-9);
    std::vector<double> any;
    BucketLevel level;
    double sum = 0.0;
    for (int i = 0; i < times; ++i) {
      any.push_back(*rc::gen::inRange(1, 300'000));
      sum += level.next(bucket, alone(any.back()), any.back()).value();
    }
    RC_ASSERT(std::abs(sum / by_definition(any, burst, pace) - 1) < 1e-9);
  }));
}

TEST(TokenBucket, MoreBurstAndAFasterWireAreNeverSlower) {
  EXPECT_TRUE(rc::check("nor fewer bytes, or rounds", [] {
    const double size = *rc::gen::inRange(1, 300'000), held = *rc::gen::inRange(0, 200'000);
    const double wire = 1e-10 * *rc::gen::inRange(1, 1000);
    const int times = *rc::gen::inRange(1, 30);
    const auto takes = [](double bytes, double of_burst, double of_pace, int count) {
      return TokenBucket{of_pace, of_burst * of_pace}.rounds(alone(bytes, of_burst, of_pace), bytes, count).value();
    };
    const double it = takes(size, held, wire, times) * (1 + 1e-12);
    RC_ASSERT(takes(size, held * 1.5, wire, times) <= it);
    RC_ASSERT(takes(size, held, wire / 1.5, times) <= it);
    RC_ASSERT(takes(size / 1.5, held, wire, times) <= it);
    RC_ASSERT(takes(size, held, wire, std::max(1, times - 1)) <= it);
  }));
}

std::vector<CurvePoint> sampled(double first, double last, double (*seconds)(double)) {
  std::vector<CurvePoint> points;
  for (double bytes = first; bytes <= last; bytes *= 2) points.push_back({bytes, seconds(bytes), 0.0});
  return points;
}

TEST(CurveBucket, IsFoundBetweenSampledSizes) {
  const auto shaped = [](double bytes) { return 20e-6 + std::max(0.0, bytes - 40000) * 8e-9; };
  const Curve curve = Curve::fit(sampled(64, 1 << 24, shaped));
  EXPECT_NEAR(curve.bucket().pace, 8e-9, 1e-11);
  EXPECT_NEAR(curve.bucket().burst(), 40000, 500);
  // The lines meet where it is empty, and not in the middle of 32 and 64 KiB.
  EXPECT_NEAR(curve.seconds(39000), 20e-6, 0.5e-6);
  EXPECT_NEAR(curve.seconds(50000), 20e-6 + 10000 * 8e-9, 1e-6);
}

// A wire alone has none; nor has one whose longer messages are somewhat slower (caches), or faster (protocols).
TEST(CurveBucket, IsNotFoundWhereThereIsNone) {
  EXPECT_EQ(Curve::fit(sampled(64, 1 << 24, [](double s) { return 20e-6 + s * 8e-9; })).bucket().held, 0.0);
  const auto caches = [](double s) { return 20e-6 + s * 4e-10 + std::max(0.0, s - (1 << 20)) * 2e-10; };
  EXPECT_EQ(Curve::fit(sampled(64, 1 << 27, caches)).bucket().held, 0.0);
  const auto protocols = [](double s) { return s < 20000 ? 5e-6 + s * 1e-9 : 60e-6 + s * 0.5e-9; };
  EXPECT_EQ(Curve::fit(sampled(64, 1 << 24, protocols)).bucket().held, 0.0);
}

Network shaped_hosts(int nodes, Algorithm algorithm) {
  std::vector<PointToPointSample> samples;
  for (double bytes = 64; bytes <= 1 << 24; bytes *= 2)
    samples.push_back({false, 1, Bytes{bytes}, Seconds{alone(bytes)}, 0.0, true});
  for (const PointToPointSample& one_way : std::vector(samples)) {
    samples.push_back(one_way);
    samples.back().both_ways = false;
  }
  return {Topology::make(test::cpu_spec(nodes, 1)).value(), std::move(samples), {}, algorithm};
}

double seconds(Collective collective, Algorithm algorithm, int nodes, double bytes) {
  return shaped_hosts(nodes, algorithm).collective(collective, Bytes{bytes}, {1, nodes, 1}).time.time.value();
}

// Rings of 4 of 256 KiB: 3 and 6 rounds of 64 KiB. Recursive doubling of 64 KiB: 2 rounds. Rabenseifner of 64 KiB: 32,
// 16, 16 and 32 KiB; the first takes all that the bucket has, and each latency gives 20 us of it back.
TEST(TokenBucketCollectives, OneBucketForAllRounds) {
  EXPECT_NEAR(seconds(Collective::all_gather, Algorithm::ring, 4, 1 << 18), 20e-6 + (3 * 65536 - 32768) * 8e-9, 2e-6);
  EXPECT_NEAR(seconds(Collective::all_reduce, Algorithm::ring, 4, 1 << 18), 20e-6 + (6 * 65536 - 32768) * 8e-9, 2e-6);
  EXPECT_NEAR(seconds(Collective::all_reduce, Algorithm::recursive_doubling, 4, 65536),
              20e-6 + (2 * 65536 - 32768) * 8e-9, 2e-6);
  EXPECT_NEAR(seconds(Collective::all_reduce, Algorithm::rabenseifner, 4, 65536), 20e-6 + (98304 - 32768) * 8e-9, 2e-6);
}

// Two trees over two, 64 KiB: each rank sends 32 KiB up one of them and 32 KiB down the other, and the second waits.
TEST(TokenBucketCollectives, OneBucketUpATreeAndDown) {
  EXPECT_NEAR(seconds(Collective::all_reduce, Algorithm::tree, 2, 65536), 20e-6 + (65536 - 32768) * 8e-9, 2e-6);
  EXPECT_NEAR(seconds(Collective::all_reduce, Algorithm::tree, 2, 32768), 2 * 20e-6, 1e-9);
}

// An all-to-all of 4 of 64 KiB: three messages of 16 KiB at once, 16 KiB more than the bucket holds.
TEST(TokenBucketCollectives, OneBucketForAllMessagesAtOnce) {
  EXPECT_NEAR(seconds(Collective::all_to_all, Algorithm::ring, 4, 65536), 20e-6 + (3 * 16384 - 32768) * 8e-9, 2e-6);
  // Halos with two neighbours, 32 KiB each: 64 KiB leave.
  EXPECT_NEAR(seconds(Collective::send_receive, Algorithm::ring, 4, 65536), 20e-6 + (65536 - 32768) * 8e-9, 2e-6);
}

TEST(TokenBucketCollectives, MoreBytesAreNeverFaster) {
  EXPECT_TRUE(rc::check("over any shaped wire, by any algorithm", [] {
    const double held = std::pow(2.0, *rc::gen::inRange(100, 200) / 10.0), wire = 1e-10 * *rc::gen::inRange(10, 1000);
    std::vector<PointToPointSample> samples;
    for (double bytes = 64; bytes <= 1 << 24; bytes *= 2)
      samples.push_back({false, 1, Bytes{bytes}, Seconds{alone(bytes, held, wire)}, 0.0, *rc::gen::arbitrary<bool>()});
    const auto algorithm = *rc::gen::element(
        Algorithm::automatic, Algorithm::ring, Algorithm::bruck, Algorithm::halving_doubling, Algorithm::binomial,
        Algorithm::linear, Algorithm::pairwise, Algorithm::recursive_doubling, Algorithm::rabenseifner, Algorithm::tree,
        Algorithm::hierarchical, Algorithm::multi_dimensional);
    const auto collective = *rc::gen::element(Collective::all_reduce, Collective::all_gather, Collective::broadcast,
                                              Collective::all_to_all, Collective::send_receive);
    const Network network(Topology::make(test::cpu_spec(16, 2)).value(), samples, {}, algorithm);
    const GroupPlacement placement{*rc::gen::inRange(1, 3), *rc::gen::inRange(2, 17), 1};
    const auto at = [&](double bytes) {
      return network.collective(collective, Bytes{bytes}, placement).time.time.value();
    };
    const double bytes = std::pow(2.0, *rc::gen::inRange(0, 260) / 10.0);
    RC_ASSERT(at(bytes) <= at(bytes * (1 + *rc::gen::inRange(1, 300) / 100.0)) * (1 + 1e-9));
  }));
}

// All-gathers of two of m bytes: one round of m/2. Measured at 16, 32, 128 and 256 KiB; that of 64 KiB takes the whole
// bucket and 20 us, that of 96 KiB leaves 16 KiB to the wire. Straight from 32 to 128 KiB would be 87 us more.
TEST(TokenBucketCollectives, MeasuredOnesBendWhereItIsEmpty) {
  std::vector<CollectiveSample> timed;
  for (const double kib : {16.0, 32.0, 128.0, 256.0})
    timed.push_back({Collective::all_gather,
                     Algorithm::ring,
                     {1, 2, 1},
                     Bytes{kib * 1024},
                     Seconds{alone(kib * 512)},
                     0.0,
                     "test"});
  const Network network = shaped_hosts(2, Algorithm::ring).knowing(timed);
  const auto at = [&](double kib) {
    return network.collective(Collective::all_gather, Bytes{kib * 1024}, {1, 2, 1}).time.time.value();
  };
  EXPECT_NEAR(at(64), 20e-6, 1e-9);
  EXPECT_NEAR(at(96), 20e-6 + 16384 * 8e-9, 1e-9);
  EXPECT_NEAR(at(192), alone(192 * 512), 1e-9);
  // Where messages are straight in their bytes, so is what lies between samples.
  const Network plain = test::straight_network(2, 1, Algorithm::ring, timed);
  const double straight = plain.collective(Collective::all_gather, Bytes{65536}, {1, 2, 1}).time.time.value();
  EXPECT_NEAR(straight, 20e-6 + (alone(65536) - 20e-6) / 3, 1e-9);
}

// The same, each sample half as long again as messages say and 10 us on top: what they say of 64 KiB, a bucket's
// latency as of 32 KiB, and of 96 KiB, a third of the way to 128 KiB, is stretched to meet both.
TEST(TokenBucketCollectives, MeasuredOnesHaveTheShapeOfMessages) {
  const auto longer = [](double kib) { return 10e-6 + 1.5 * alone(kib * 512); };
  std::vector<CollectiveSample> timed;
  for (const double kib : {32.0, 128.0})
    timed.push_back(
        {Collective::all_gather, Algorithm::ring, {1, 2, 1}, Bytes{kib * 1024}, Seconds{longer(kib)}, 0.0, "test"});
  const Network network = shaped_hosts(2, Algorithm::ring).knowing(timed);
  for (const double kib : {32.0, 48.0, 64.0, 96.0, 112.0, 128.0})
    EXPECT_NEAR(network.collective(Collective::all_gather, Bytes{kib * 1024}, {1, 2, 1}).time.time.value(), longer(kib),
                1e-9)
        << kib;
}

}  // namespace
}  // namespace sibyl

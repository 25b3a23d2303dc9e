// How measured collectives are used: at a size, between sizes, beyond them, and for other placements.
#include <gtest/gtest.h>

#include <cmath>

#include "netmodel/collective_table.h"
#include "tests/unit/netmodel/machine.h"

namespace sibyl {
namespace {

constexpr GroupPlacement two_nodes{1, 2, 1};

CollectiveSample sample(double bytes, double seconds, Algorithm algorithm = Algorithm::automatic,
                        GroupPlacement placement = two_nodes) {
  return {Collective::all_reduce, algorithm, placement, Bytes{bytes}, Seconds{seconds}, 0.03, "test"};
}

Network network(std::vector<CollectiveSample> samples, Algorithm algorithm = Algorithm::automatic) {
  return test::straight_network(8, 1, algorithm, std::move(samples));
}

Estimate ask(const Network& on, double bytes, GroupPlacement placement = two_nodes) {
  return on.collective(Collective::all_reduce, Bytes{bytes}, placement).time;
}

// Samples of what nobody chooses answer who asks for it by name, and no others.
TEST(Samples, OfWhatIsOnlyAskedForAreNotChosen) {
  CollectiveSample timed = sample(4e6, 0.010, Algorithm::bruck);
  timed.collective = Collective::all_gather;
  const Network on = network({timed, sample(4e6, 0.010, Algorithm::bidirectional_ring)});
  EXPECT_NEAR(ask(on, 4e6).time.value(), 0.04002, 1e-7);  // the ring's, by formula
  EXPECT_NEAR(on.collective(Collective::all_gather, Bytes{4e6}, two_nodes).time.time.value(), 0.02001, 1e-7);
  const auto named = [&](Collective collective, Algorithm algorithm) {
    return on.collective(collective, Bytes{4e6}, two_nodes, algorithm).time;
  };
  EXPECT_DOUBLE_EQ(named(Collective::all_gather, Algorithm::bruck).time.value(), 0.010);
  EXPECT_EQ(named(Collective::all_reduce, Algorithm::bidirectional_ring).provenance, Provenance::measured);
}

TEST(Samples, MeasuredWithinTwoPercentOfASize) {
  const Network on = network({sample(1e6, 0.030), sample(4e6, 0.120)});
  const Estimate exact = ask(on, 1e6);
  EXPECT_DOUBLE_EQ(exact.time.value(), 0.030);
  EXPECT_EQ(exact.provenance, Provenance::measured);
  EXPECT_DOUBLE_EQ(exact.relative_error, 0.03);
  EXPECT_EQ(ask(on, 1.019e6).provenance, Provenance::measured);
  EXPECT_EQ(ask(on, 1.021e6).provenance, Provenance::interpolated);
}

// A third of the way from 1e6 to 4e6 is 2e6, from 30 ms to 120 ms 60 ms. The gap is two octaves: 4 % beside the
// samples' spread of 3 % makes 5 %.
TEST(Samples, InterpolatedBetweenSizes) {
  const Estimate estimate = ask(network({sample(1e6, 0.030), sample(4e6, 0.120)}), 2e6);
  EXPECT_NEAR(estimate.time.value(), 0.060, 1e-12);
  EXPECT_EQ(estimate.provenance, Provenance::interpolated);
  EXPECT_NEAR(estimate.relative_error, 0.05, 1e-12);
}

// The ring of two ranks takes 2 (10 us + m/2 * 10 ns): 10.02 ms for 1e6, 40.02 for 4e6, 80.02 for 8e6. The samples took
// 3 times as long.
TEST(Samples, BeyondTheSizesTheFormulaIsScaled) {
  const Network on = network({sample(1e6, 3 * 0.01002), sample(4e6, 3 * 0.04002)});
  const Estimate estimate = ask(on, 8e6);
  EXPECT_NEAR(estimate.time.value(), 3 * 0.08002, 1e-7);
  EXPECT_EQ(estimate.provenance, Provenance::interpolated);
  EXPECT_EQ(ask(on, 64e6).provenance, Provenance::estimated);  // four octaves beyond
}

// 1e6 bytes take 0.8 of their time where each rank rests in between, 4e6 bytes 0.9: 2e6, in the middle by octaves,
// 0.85. Longer ones as the longest; of shorter ones, and of other ranks, nothing is known.
TEST(Samples, InTurnByTheOctave) {
  std::vector<CollectiveSample> samples{sample(1e6, 0.030), sample(4e6, 0.120), sample(8e6, 0.240)};
  samples[0].in_turn = 0.8;
  samples[1].in_turn = 0.9;
  const Network on = network(samples);
  const auto share = [&](double bytes, GroupPlacement placement = two_nodes) {
    return on.collective(Collective::all_reduce, Bytes{bytes}, placement).in_turn;
  };
  EXPECT_DOUBLE_EQ(share(1e6), 0.8);
  EXPECT_NEAR(share(2e6), 0.85, 1e-12);
  EXPECT_DOUBLE_EQ(share(4e6), 0.9);
  EXPECT_DOUBLE_EQ(share(8e6), 0.9);
  EXPECT_DOUBLE_EQ(share(0.9e6), 1.0);
  EXPECT_DOUBLE_EQ(share(2e6, {1, 4, 1}), 1.0);
  EXPECT_DOUBLE_EQ(on.collective(Collective::all_gather, Bytes{2e6}, two_nodes).in_turn, 1.0);
  EXPECT_EQ(ask(on, 2e6).time, ask(network({sample(1e6, 0.030), sample(4e6, 0.120)}), 2e6).time);
  // On a wire twice as fast the shares stay.
  TopologySpec faster = on.topology().spec();
  faster.nic_bandwidth *= 2;
  EXPECT_NEAR(on.with_links(faster)->collective(Collective::all_reduce, Bytes{2e6}, two_nodes).in_turn, 0.85, 1e-12);
}

// What the formula does not know of and is the same for all sizes, 5 ms here, stays as it is: from 2e6 to 4e6 samples
// grow as the formula does, by 20 ms, and so by 40 more to 8e6.
TEST(Samples, BeyondTheSizesAStartStaysAStart) {
  const Network on = network({sample(2e6, 0.02502), sample(4e6, 0.04502)});
  EXPECT_NEAR(ask(on, 8e6).time.value(), 0.08502, 1e-7);
}

// The pace is that of the last octave, whatever was timed within it and before: between 2.2e6 and 4e6 and below 2e6
// anything may be.
TEST(Samples, BeyondTheSizesTheLastOctaveTells) {
  const Network on = network({sample(1e5, 0.001), sample(2e6, 0.02502), sample(3.9e6, 0.04501), sample(4e6, 0.04502)});
  EXPECT_NEAR(ask(on, 8e6).time.value(), 0.08502, 1e-7);
}

// A pace of a twentieth of the formula's is a disturbed sample's: it is held at the formula's, 40 ms for 4e6 bytes. One
// of half as much again as the longest says as a whole, likewise, at that.
TEST(Samples, BeyondTheSizesThePaceIsBetweenTheFormulasAndTheWhole) {
  EXPECT_NEAR(ask(network({sample(2e6, 0.040), sample(4e6, 0.041)}), 8e6).time.value(), 0.041 + 0.040, 1e-7);
  EXPECT_NEAR(ask(network({sample(2e6, 0.001), sample(4e6, 0.061)}), 8e6).time.value(), 0.061 + 0.061 / 0.04002 * 0.040,
              1e-7);
  // Between the two it counts: 26 ms for 2e6 bytes.
  EXPECT_NEAR(ask(network({sample(2e6, 0.035), sample(4e6, 0.061)}), 8e6).time.value(), 0.061 + 2 * 0.026, 1e-7);
}

// Where no message was timed the formula is read from collectives. 64e6 bytes take 1.6 ms: a pace of nearly twice that
// is held at one and a half times, one of a sixteenth at two thirds. What the shorter one says of latencies moves that
// by less than 5 %.
TEST(Samples, BeyondTheSizesOfGpusThePaceIsNearThatOfTheWhole) {
  TopologySpec spec = test::cpu_spec(1, 2);
  spec.device_link = {LinkKind::nvswitch, BytesPerSecond{100e9}, Seconds{1e-6}};
  constexpr GroupPlacement node{2, 1, 1};
  const auto added = [&](double before) {
    std::vector<CollectiveSample> samples;
    for (const auto& [bytes, seconds] : {std::pair{32e6, before}, std::pair{64e6, 1.6e-3}})
      samples.push_back(
          {Collective::all_gather, Algorithm::automatic, node, Bytes{bytes}, Seconds{seconds}, 0.0, "test"});
    const Network on(Topology::make(spec).value(), {}, std::move(samples));
    return on.collective(Collective::all_gather, Bytes{128e6}, node).time.time.value() - 1.6e-3;
  };
  EXPECT_NEAR(added(0.1e-3) / 1.6e-3, 1.5, 0.05);
  EXPECT_NEAR(added(1.5e-3) / 1.6e-3, 1 / 1.5, 0.05);
}

// Of eight ranks, the communicator sends 256 KiB by Rabenseifner's algorithm, and 4 MB round a ring. What was measured
// of its own choice ends at 256 KiB, but there a ring was timed as well, at twice what its formula says: 14 (10 us +
// m/8 * 10 ns). Whether that is so of longer ones, too, or as much as it is now, no second sample tells: half and half.
TEST(Samples, BeyondTheSizesAnotherAlgorithmsOwnSamplesCount) {
  constexpr double last = 256 * 1024;
  constexpr GroupPlacement eight{1, 8, 1};
  const auto ring = [](double bytes) { return 14 * (10e-6 + bytes / 8 * 10e-9); };
  const Network on =
      network({sample(last, 0.050, Algorithm::automatic, eight), sample(last, 0.050, Algorithm::rabenseifner, eight),
               sample(last, 2 * ring(last), Algorithm::ring, eight)});
  EXPECT_DOUBLE_EQ(ask(on, last, eight).time.value(), 0.050);
  EXPECT_NEAR(ask(on, 4e6, eight).time.value(), 2 * ring(last) + 1.5 * (ring(4e6) - ring(last)), 1e-6);
}

// The communicator's own choice came to rings at its last size alone: with what it took before by another algorithm
// that makes no pace, and the mean of the formula's and the scaled one is taken. Where rings were timed before, too,
// theirs counts: 2 of the formula's and 5 ms that stay.
TEST(Samples, BeyondTheSizesNoPaceFromOneAlgorithmToAnother) {
  constexpr double before = 512 * 1024, last = 1024 * 1024;
  constexpr GroupPlacement eight{1, 8, 1};
  const auto ring = [](double bytes) { return 14 * (10e-6 + bytes / 8 * 10e-9); };
  const auto timed = [&](double bytes) { return 2 * ring(bytes) + 0.005; };
  std::vector<CollectiveSample> samples{sample(before, 0.001, Algorithm::automatic, eight),
                                        sample(last, timed(last), Algorithm::automatic, eight)};
  const double mean = (1 + timed(last) / ring(last)) / 2;
  EXPECT_NEAR(ask(network(samples), 8e6, eight).time.value(), timed(last) + mean * (ring(8e6) - ring(last)), 1e-6);
  samples.push_back(sample(before, timed(before), Algorithm::ring, eight));
  samples.push_back(sample(last, timed(last), Algorithm::ring, eight));
  EXPECT_NEAR(ask(network(samples), 8e6, eight).time.value(), timed(8e6), 1e-6);
}

// Twice what the ring formula says on two nodes is taken for twice on four: 2 * 6 (10 us + 1e6 * 10 ns), with a wider
// error.
TEST(Samples, CarriedToAnotherCount) {
  const Network on = network({sample(4e6, 2 * 0.04002), sample(8e6, 2 * 0.08002)});
  const Estimate estimate = ask(on, 4e6, {1, 4, 1});
  EXPECT_NEAR(estimate.time.value(), 2 * 6 * 0.01001, 1e-7);
  EXPECT_EQ(estimate.provenance, Provenance::interpolated);
  EXPECT_GT(estimate.relative_error, 0.10);
}

CollectiveSample gathered(double bytes, double seconds, int ranks) {
  return sample(bytes, seconds, Algorithm::automatic, {ranks, 1, 1});
}

// Links of their own: p - 1 steps and a copy, whatever either takes for parts of a size. Of 10 kB a step takes 10 us and
// the copy 1, of 100 kB 20 and 30 (another protocol). So of 2 ranks 20 kB take 11 us and 200 kB 50, of 8 80 kB 71 and
// 800 kB 170, and of 4 ranks, the parts of which are as large, 40 kB 31 and 400 kB 90.
TEST(Samples, BetweenMeasuredCountsOfANode) {
  const Network on = network({gathered(20e3, 11e-6, 2), gathered(200e3, 50e-6, 2), gathered(2e6, 440e-6, 2),
                              gathered(80e3, 71e-6, 8), gathered(800e3, 170e-6, 8)});
  EXPECT_NEAR(ask(on, 40e3, {4, 1, 1}).time.value(), 31e-6, 1e-12);
  const Estimate estimate = ask(on, 400e3, {4, 1, 1});
  EXPECT_NEAR(estimate.time.value(), 90e-6, 1e-12);
  EXPECT_EQ(estimate.provenance, Provenance::interpolated);
  EXPECT_NEAR(estimate.relative_error, std::hypot(0.03, 0.09), 1e-12);
}

// Shared ways: a moved byte takes 4 times as long among 8 as among 2, so twice as long among 4. Of 2 ranks 1/2 moves in
// 100 us, of 8 7/8 in 700 us, of 4 3/4 in 3/4 * 400 us.
TEST(Samples, BetweenMeasuredCountsThatShareAWay) {
  const Network on =
      network({gathered(1e3, 10e-6, 2), gathered(1e6, 110e-6, 2), gathered(1e3, 10e-6, 8), gathered(1e6, 710e-6, 8)});
  EXPECT_NEAR(ask(on, 1e6, {4, 1, 1}).time.value(), 310e-6, 1e-12);
}

// Between sizes of one count lie those of the other: 5e5 is half-way from 1e3 (10 us) to 999e3 (30 us) among 2.
TEST(Samples, BetweenCountsAtTheSizesOfBoth) {
  const Network on = network({gathered(1e3, 10e-6, 2), gathered(999e3, 30e-6, 2), gathered(1e3, 10e-6, 4),
                              gathered(5e5, 20e-6, 4), gathered(999e3, 30e-6, 4)});
  EXPECT_NEAR(ask(on, 5e5, {3, 1, 1}).time.value(), 20e-6, 1e-12);
}

TEST(Samples, InsideANodeSayNothingAboutBetweenNodes) {
  const Network on = network({sample(4e6, 9.0, Algorithm::automatic, {4, 1, 1})});
  EXPECT_EQ(ask(on, 4e6, {1, 4, 1}).provenance, Provenance::estimated);
  EXPECT_NEAR(ask(on, 4e6, {1, 4, 1}).time.value(), 6 * 0.01001, 1e-7);
}

TEST(Samples, TheLibrarysOwnChoiceComesBeforeAFasterAlgorithm) {
  const Network on = network({sample(4e6, 0.050), sample(4e6, 0.040, Algorithm::tree)});
  EXPECT_DOUBLE_EQ(ask(on, 4e6).time.value(), 0.050);
  EXPECT_DOUBLE_EQ(
      ask(network({sample(4e6, 0.050), sample(4e6, 0.040, Algorithm::tree)}, Algorithm::tree), 4e6).time.value(),
      0.040);
}

TEST(Samples, WithoutItTheFastestMeasuredAlgorithm) {
  const CollectiveEstimate estimate =
      network({sample(4e6, 0.050, Algorithm::ring), sample(4e6, 0.045, Algorithm::tree)})
          .collective(Collective::all_reduce, Bytes{4e6}, two_nodes);
  EXPECT_DOUBLE_EQ(estimate.time.time.value(), 0.045);
  EXPECT_EQ(estimate.algorithm, Algorithm::tree);
}

// Another library's times are its own: nobody else is given them, and who asks for them gets no others.
TEST(Samples, OfGlooAreForWhoAsksForIt) {
  const Network both = network({sample(4e6, 0.050), sample(4e6, 0.090, Algorithm::gloo)});
  const auto gloo = both.collective(Collective::all_reduce, Bytes{4e6}, two_nodes, Algorithm::gloo);
  EXPECT_DOUBLE_EQ(gloo.time.time.value(), 0.090);
  EXPECT_EQ(gloo.algorithm, Algorithm::gloo);
  EXPECT_DOUBLE_EQ(ask(both, 4e6).time.value(), 0.050);
  // Faster, but still another library: the ring's formula, 40.02 ms, is the answer.
  EXPECT_NEAR(ask(network({sample(4e6, 0.010, Algorithm::gloo)}), 4e6).time.value(), 0.04002, 1e-7);
}

// 3, 1, 2 with logarithms' means: sqrt(3 * 1) = 1.73 < 2, so two pools.
TEST(NeverFalling, PoolsNeighboursThatFall) {
  std::vector<CurvePoint> points{{1, 3.0, 0.0}, {2, 1.0, 0.0}, {3, 2.0, 0.0}};
  never_falling(points);
  EXPECT_NEAR(points[0].seconds, std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(points[1].seconds, std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(points[2].seconds, 2.0, 1e-12);
}

// NVLink read off all-reduces of 8: 14 latencies of 1 us in the smallest, 1.75 m / (100 GB/s) beyond in the largest.
// An all-gather of 8 MB then takes 7 hops of that latency and rate, in LL128, whose launch is 7.4 us longer, whose
// hops 1.3 us, and which has 15/16 of the rate.
TEST(Samples, TellTheRateOfADeviceLinkThatNoMessageTimed) {
  TopologySpec spec = test::cpu_spec(2, 8);
  spec.device_link = {LinkKind::nvswitch, BytesPerSecond{300e9}, Seconds{5e-6}};
  const GroupPlacement node{8, 1, 1};
  const Network on(Topology::make(spec).value(), {},
                   {sample(1000, 14e-6, Algorithm::automatic, node),
                    sample(1e8 + 1000, 14e-6 + 1.75e8 / 100e9, Algorithm::automatic, node)},
                   Algorithm::ring);
  EXPECT_NEAR(on.collective(Collective::all_gather, Bytes{8e6}, node).time.time.value(),
              7.4e-6 + 7 * (2.3e-6 + 16.0 / 15 * 1e6 / 100e9), 1e-10);
}

TEST(PointToPoint, MeasuredInterpolatedOrFromTheTopology) {
  const Network measured = test::straight_network(2, 2, Algorithm::automatic);
  EXPECT_EQ(measured.point_to_point(Bytes{4096}, false).provenance, Provenance::measured);
  EXPECT_EQ(measured.point_to_point(Bytes{6000}, false).provenance, Provenance::interpolated);
  EXPECT_EQ(measured.point_to_point(Bytes{1e9}, false).provenance, Provenance::estimated);
  EXPECT_NEAR(measured.point_to_point(Bytes{1e6}, false, 3).time.value(), 10e-6 + 3 * 0.01, 1e-8);
  const Network bare(Topology::make(test::cpu_spec(2, 2)).value(), {}, {});
  const Estimate guess = bare.point_to_point(Bytes{1e6}, false);
  EXPECT_EQ(guess.provenance, Provenance::estimated);
  EXPECT_NEAR(guess.time.value(), 10e-6 + 1e6 / (100e6 * 0.92), 1e-9);
}

TEST(Network, ResizedKeepsItsMeasurements) {
  const Network on = network({sample(1e6, 0.030)});
  const Network larger = on.resized(64, 4).value();
  EXPECT_EQ(larger.topology().spec().nodes, 64);
  EXPECT_DOUBLE_EQ(ask(larger, 1e6).time.value(), 0.030);
  EXPECT_FALSE(on.resized(0, 1).has_value());
}

TEST(Algorithms, NamesReadBack) {
  for (const Algorithm algorithm :
       {Algorithm::automatic, Algorithm::ring, Algorithm::recursive_doubling, Algorithm::rabenseifner, Algorithm::tree,
        Algorithm::hierarchical, Algorithm::multi_dimensional, Algorithm::in_network})
    EXPECT_EQ(parse_algorithm(to_string(algorithm)).value(), algorithm);
  EXPECT_FALSE(parse_algorithm("carrier pigeon").has_value());
}

}  // namespace
}  // namespace sibyl

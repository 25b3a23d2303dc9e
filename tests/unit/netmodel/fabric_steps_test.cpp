// Collectives step by step, by hand on links of 100 MB/s and 1 us, a message of 1e8 bytes taking a second.
#include "netmodel/fabric/contention/steps.h"

#include <gtest/gtest.h>

#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl::fabric {
namespace {

constexpr double us = 1e-6;

// `seconds`: of each message.
struct Sent {
  int from, to;
  double seconds;
};

double steps(const Fabric& fabric, std::vector<Sent> sent, int times, Round::Kind kind = Round::Kind::pipelined) {
  Round round{"test", times, kind, Round::Of::whole, {}};
  for (const Sent& message : sent) round.messages.push_back({message.from, message.to, message.seconds});
  return step_by_step(fabric, fabric.capacities(), {{round}, 1.0, 0.0}, test::rate).seconds;
}

// Seven rounds of a message and a latency, whoever looks at it.
TEST(StepByStep, ARingOfAlikeLinksIsItsClosedForm) {
  const Costs costs(std::make_shared<const Fabric>(test::direct(Torus{{8}}, 8)), {8, 1.0, 1.0, false});
  const Schedule ring = costs.schedule_of(Collective::all_gather, Algorithm::ring, {1, 8, 1});
  const Steps all = step_by_step(*costs.fabric(), costs.capacities(), ring, 8 * test::rate);
  EXPECT_EQ(all.messages, 7 * 8);
  EXPECT_NEAR(all.seconds, 7 * (1 + us), 1e-9);
  EXPECT_NEAR(costs.seconds(ring, 8 * test::rate), all.seconds, 1e-9);
}

// A message that takes three times as long is always on its way, for what it waits for came long before: three of them,
// and one latency. The others' second and third messages fit in between.
TEST(StepByStep, ASlowLinkIsNeverIdle) {
  const Fabric ring = test::direct(Torus{{3}}, 3);
  const std::vector<Sent> sent{{0, 1, 1.0}, {1, 2, 1.0}, {2, 0, 3.0}};
  EXPECT_NEAR(steps(ring, sent, 2), 6 + us, 1e-9);
  EXPECT_NEAR(steps(ring, sent, 3), 9 + us, 1e-9);
}

// Two nodes of two ranks, six rounds of parts of 2e6 bytes: over the wire 20 ms and 10 us, in a node 2 ms and less. A
// ring leaves a node by the NIC at which it came, and goes on there as soon as the last part was sent: 6 parts and a
// latency, where the closed form has the mean latency six times.
TEST(StepByStep, ARingOverNodesHidesLatencies) {
  const Costs costs(std::make_shared<const Fabric>(test::with_nics(LeafSpine{2, 1, 1}, 2, 2)), {2, 1.0, 1.0, false});
  const Schedule ring = costs.schedule_of(Collective::all_reduce, Algorithm::ring, {2, 2, 1});
  EXPECT_NEAR(step_by_step(*costs.fabric(), costs.capacities(), ring, 8e6).seconds, 6 * 0.020 + 10 * us, 1e-9);
  EXPECT_NEAR(costs.seconds(ring, 8e6), 6 * (0.020 + 5.5 * us), 1e-9);
}

// Two messages share each link, and do so again in each round: 2 s each.
TEST(StepByStep, RingsShareLinks) {
  const Fabric ring = test::direct(Torus{{3}}, 3);
  std::vector<Sent> sent;
  for (int rank = 0; rank < 3; ++rank)
    for (int twice = 0; twice < 2; ++twice) sent.push_back({rank, (rank + 1) % 3, 1.0});
  EXPECT_NEAR(steps(ring, sent, 4), 4 * (2 + us), 1e-9);
}

// From rank 0 one message of 1 s to the next rank and one of 2 s on to the one behind it, over the same first link:
// they halve it for 2 s, then the longer one has it for another, and two latencies. Twice so, one after the other.
TEST(StepByStep, RatesAreSharedAnewWhenOneEnds) {
  const Fabric ring = test::direct(Torus{{8}}, 8);
  EXPECT_NEAR(steps(ring, {{0, 1, 1.0}, {0, 2, 2.0}}, 1, Round::Kind::exchange), 3 + 2 * us, 1e-9);
  EXPECT_NEAR(steps(ring, {{0, 1, 1.0}, {0, 2, 2.0}}, 2, Round::Kind::exchange), 6 + 4 * us, 1e-9);
}

// Ranks 0 and 1 send each other messages of 1 and 3 s, 7 sends 2 ones of 2 s over the link from 0 to 1, and gets empty
// ones. The first two share that link until 2 s, when the shorter is sent; the longer one is at 3. Rank 7 goes on at
// once; when 1's message has come, after 3 s and a latency, 0's second message takes half of the link again for 2 s. So
// 7's second one is sent at 6 s, and three links further on a little later.
TEST(StepByStep, OneThatComesInBetweenTakesItsShare) {
  const Fabric ring = test::direct(Torus{{8}}, 8);
  EXPECT_NEAR(steps(ring, {{0, 1, 1.0}, {1, 0, 3.0}, {7, 2, 2.0}, {2, 7, 0.0}}, 2), 6 + 3 * us, 1e-9);
}

// Of alike ranks every algorithm takes what the simulation of one round of each kind says.
TEST(StepByStep, AgreesWithRoundsThatAreAlike) {
  const auto fabric = std::make_shared<const Fabric>(test::with_nics(LeafSpine{16, 1, 1}, 16));
  const Costs costs(fabric, {16, 1.0, 1.0, false});
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::bidirectional_ring, Algorithm::recursive_doubling,
                                    Algorithm::rabenseifner, Algorithm::hierarchical, Algorithm::binomial}) {
    const Schedule schedule = costs.schedule_of(Collective::all_reduce, algorithm, {1, 16, 1});
    const double once = simulated_seconds(*fabric, costs.capacities(), schedule, 1e8);
    EXPECT_NEAR(step_by_step(*fabric, costs.capacities(), schedule, 1e8).seconds / once, 1.0, 1e-9)
        << to_string(algorithm);
  }
}

TEST(StepByStep, NothingToSendTakesNoTime) {
  EXPECT_EQ(step_by_step(test::direct(Torus{{3}}, 3), {}, {}, 1e6).seconds, 0.0);
  const Fabric ring = test::direct(Torus{{3}}, 3);
  EXPECT_NEAR(steps(ring, {{0, 1, 0.0}, {1, 2, 0.0}, {2, 0, 0.0}}, 5), 5 * us, 1e-12);
}

}  // namespace
}  // namespace sibyl::fabric

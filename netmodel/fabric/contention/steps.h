// A collective step by step: every message of every round is sent, and ranks need not be in the same round.
//
// Around a ring a message of the next round is sent when that has arrived for which it waits (Round::after), those over
// one way one after the other. Every other round begins when the one before has ended everywhere. Bytes move at max-min
// fair rates (sharing.h), and arrive a latency, each way's own, after the last of them was sent. simulated_seconds()
// (simulation.h) takes from the rounds' being alike what this shows: there a ring's rounds are one, so many times over,
// with the mean latency.
//
// No two messages are taken to be alike here. It is quick by two things: what happens at one moment is handled
// together, and rates are shared only among ways with channels in common, and anew only where other ones of them are
// busy than when they were shared last.
#pragma once

#include <cstdint>
#include <span>

#include "netmodel/fabric/schedule.h"

namespace sibyl::fabric {

struct Steps {
  double seconds = 0.0;
  std::int64_t messages = 0;
};

Steps step_by_step(const Fabric& fabric, std::span<const double> capacities, const Schedule& schedule, double bytes);

// How many messages that would be.
std::int64_t messages_of(const Schedule& schedule);

}  // namespace sibyl::fabric

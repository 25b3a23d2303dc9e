// What a pipeline's message to a neighbour and the exchanges of the turn beside it do to each other, where both leave
// by one wire.
//
// A turn of length T, by itself, whose exchanges keep the wire busy for X of it, wants a share u = X/T of the wire. A
// message asks for all of it. Each then has half as long as both are there (max-min fairness), so that in the time in
// which the message would be through, S, the turn is held up by u S, and the message is through after (1 + u) S: all
// bytes take the wire as long as ever. The exchanges are taken to be spread evenly over the turn.
//
// Of both walks over a schedule (schedule_walk.h, closed/schedule_form.h); seconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "netmodel/network.h"

namespace sibyl {

// For how long a turn's exchanges keep the wires busy, had they these to themselves: inside the node, between nodes.
using WireTime = std::array<double, 2>;
inline std::size_t wire_of(const WireUse& use) { return use.between_nodes ? 1 : 0; }

// What a message, which would keep the wire busy for so long alone, loses to the turn that begins as it is sent.
inline double send_delay(double busy, double exchanges, double turn) {
  return exchanges > 0 ? std::min(busy * exchanges / turn, exchanges) : 0.0;
}

// What a turn loses to messages of its rank that are on their way until then.
inline double turn_delay(double start, const std::array<double, 2>& until, const WireTime& exchanges, double turn) {
  double delay = 0;
  for (std::size_t wire = 0; wire < exchanges.size(); ++wire) {
    if (exchanges[wire] <= 0 || until[wire] <= start) continue;
    const double share = exchanges[wire] / turn;
    delay += std::min((until[wire] - start) * share / (1 + share), exchanges[wire]);
  }
  return delay;
}

}  // namespace sibyl

// What leaves a pipeline's rank by one wire at the same time, and what one thing loses to the other: messages to its
// neighbours, the exchanges of its turns, and the gradients of those of its stages that have done all their turns.
//
// Each then has its part of the wire as long as both are there: by flows, as max-min fairness among these has it. All
// ranks of a node that send to the next stage are as many flows, a ring over nodes is one. Below a message is of m
// flows and what it meets of x.
//
// A message beside a turn. A turn of length T, by itself, whose exchanges keep the wire busy for X of it, wants a share
// u = X/T of the wire, evenly over the turn. A message asks for all of it. The turn goes on at 1 / (1 + u m/x) of its
// speed, and the message, which takes S by itself, is through S u / (1 - u + u m/x) later, but no more than X: of as
// many flows it takes (1 + u) S.
// Parameters that are gathered meanwhile (ZeRO 3) want the wire, too, and X is with them; but the turn is held up only
// as far as it waits for them: by H in all, if all of X takes twice as long. As long as the message is there it goes on
// at T / (T + H m/x) of its speed.
//
// Gradients beside either. They ask for all of the wire, too: what they hold a turn up is what a message would. A
// message of S beside gradients that still need L of the wire is through after S + min(S x/m, L), and the gradients are
// there later by m/x of that delay.
//
// Of both walks over a schedule (schedule_walk.h, closed/schedule_form.h); seconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "netmodel/network.h"

namespace sibyl {

inline std::size_t wire_of(const WireUse& use) { return use.between_nodes ? 1 : 0; }

// For how long something keeps the wires busy, had it these to itself: inside the node, between nodes. And as how many
// flows, in the mean of that time.
struct WireTime {
  struct OnOne {
    double seconds = 0, flows = 1;
    void add(double further, double as) {
      if (further <= 0) return;
      flows = (seconds * flows + further * as) / (seconds + further);
      seconds += further;
    }
  };
  std::array<OnOne, 2> on{};

  void add(double seconds, const WireUse& use) { on[wire_of(use)].add(seconds * use.busy, use.flows); }
};

// What a turn asks of the wires: X and H of above. Of exchanges alone they are the same.
struct TurnWires {
  WireTime busy{};
  std::array<double, 2> held_up{};
};

inline TurnWires of_exchanges(const WireTime& busy) { return {busy, {busy.on[0].seconds, busy.on[1].seconds}}; }

// What asks for all of a wire until then.
struct OnWire {
  double until = 0, flows = 1;
};
using OnWires = std::array<OnWire, 2>;

// What a message, which would keep the wire busy for so long alone, loses to the turn that begins as it is sent.
inline double send_delay(double message, double flows, const WireTime::OnOne& busy, double turn) {
  if (busy.seconds <= 0) return 0.0;
  const double share = std::min(1.0, busy.seconds / turn);
  return std::min(message * share / (1 - share + share * flows / busy.flows), busy.seconds);
}

// What a turn loses on one wire.
inline double turn_delay(double start, const OnWire& other, std::size_t wire, const TurnWires& wires, double turn) {
  if (wires.held_up[wire] <= 0 || other.until <= start) return 0.0;
  const double held_up = wires.held_up[wire] * other.flows / wires.busy.on[wire].flows;
  return std::min((other.until - start) * held_up / (turn + held_up), held_up);
}

inline double turn_delay(double start, const OnWires& others, const TurnWires& wires, double turn) {
  return turn_delay(start, others[0], 0, wires, turn) + turn_delay(start, others[1], 1, wires, turn);
}

// The gradients that a rank still exchanges while it goes on with other stages.
class GradientsUnderWay {
 public:
  // Of a further stage, there at that time. Alone they take `messages`, and keep the wires busy for `wires` of it.
  void add(double end, double messages, const WireTime& wires) {
    if (end > end_ && messages > 0)
      for (std::size_t wire = 0; wire < shares_.size(); ++wire)
        shares_[wire] = {wires.on[wire].seconds / messages, wires.on[wire].flows};
    end_ = std::max(end_, end);
  }
  [[nodiscard]] double end() const { return end_; }  // 0: there were none

  // What a message, sent then, loses to them; and they to it.
  double delay_send(double start, double busy, const WireUse& use) {
    if (end_ <= start) return 0.0;
    const Share& share = shares_[wire_of(use)];
    const double delay = std::min((end_ - start) * share.of_time, busy * share.flows / use.flows);
    end_ += delay * use.flows / share.flows;
    return delay;
  }

  // The same of a turn.
  double delay_turn(double start, const TurnWires& wires, double turn) {
    const double left = end_ - start;
    if (left <= 0) return 0.0;
    double delay = 0;
    for (std::size_t wire = 0; wire < shares_.size(); ++wire) {
      const Share& share = shares_[wire];
      const double lost = turn_delay(start, {start + left * share.of_time, share.flows}, wire, wires, turn);
      delay += lost;
      end_ += lost * wires.busy.on[wire].flows / share.flows;
    }
    return delay;
  }

 private:
  struct Share {
    double of_time = 0, flows = 1;
  };
  double end_ = 0;
  std::array<Share, 2> shares_{};
};

}  // namespace sibyl

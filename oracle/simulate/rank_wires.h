// What leaves a pipeline's rank by one wire at the same time, and what one thing loses to the other: messages to its
// neighbours, the exchanges of its turns, and the gradients of those of its stages that have done all their turns.
//
// Each then has half of the wire as long as both are there (max-min fairness), so that all bytes take it as long as
// ever.
//
// A message beside a turn. A turn of length T, by itself, whose exchanges keep the wire busy for X of it, wants a share
// u = X/T of the wire, evenly over the turn. A message asks for all of it. In the time in which the message would be
// through, S, the turn is held up by u S, and the message is through after (1 + u) S.
// Parameters that are gathered meanwhile (ZeRO 3) want the wire, too, and X is with them; but the turn is held up only
// as far as it waits for them: by H in all, if all of X takes twice as long. As long as the message is there it goes on
// at T / (T + H) of its speed.
//
// Gradients beside either. They ask for all of the wire, too: what they hold a turn up is what a message would. A
// message of S beside gradients that still need L of the wire is through after S + min(S, L), and the gradients are
// there later by as much.
//
// Of both walks over a schedule (schedule_walk.h, closed/schedule_form.h); seconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "netmodel/network.h"

namespace sibyl {

// For how long something keeps the wires busy, had it these to itself: inside the node, between nodes.
using WireTime = std::array<double, 2>;
inline std::size_t wire_of(const WireUse& use) { return use.between_nodes ? 1 : 0; }

// What a turn asks of the wires: X and H of above. Of exchanges alone they are the same.
struct TurnWires {
  WireTime busy{}, held_up{};
};

// What a message, which would keep the wire busy for so long alone, loses to the turn that begins as it is sent.
inline double send_delay(double message, double busy, double turn) {
  return busy > 0 ? std::min(message * busy / turn, busy) : 0.0;
}

// What a turn loses to what asks for all of the wire until then.
inline double turn_delay(double start, const std::array<double, 2>& until, const TurnWires& wires, double turn) {
  double delay = 0;
  for (std::size_t wire = 0; wire < until.size(); ++wire) {
    const double held_up = wires.held_up[wire];
    if (held_up <= 0 || until[wire] <= start) continue;
    delay += std::min((until[wire] - start) * held_up / (turn + held_up), held_up);
  }
  return delay;
}

// The gradients that a rank still exchanges while it goes on with other stages.
class GradientsUnderWay {
 public:
  // Of a further stage, there at that time. Alone they take `messages`, and keep the wires busy for `wires` of it.
  void add(double end, double messages, const WireTime& wires) {
    if (end > end_ && messages > 0)
      for (std::size_t wire = 0; wire < wires.size(); ++wire) shares_[wire] = wires[wire] / messages;
    end_ = std::max(end_, end);
  }
  [[nodiscard]] double end() const { return end_; }  // 0: there were none

  // What a message, sent then, loses to them; and they to it.
  double delay_send(double start, double busy, std::size_t wire) {
    const double delay = std::clamp((end_ - start) * shares_[wire], 0.0, busy);
    end_ += delay;
    return delay;
  }

  // The same of a turn.
  double delay_turn(double start, const TurnWires& wires, double turn) {
    if (end_ <= start) return 0.0;
    const double delay =
        turn_delay(start, {start + (end_ - start) * shares_[0], start + (end_ - start) * shares_[1]}, wires, turn);
    end_ += delay;
    return delay;
  }

 private:
  double end_ = 0;
  WireTime shares_{};
};

}  // namespace sibyl

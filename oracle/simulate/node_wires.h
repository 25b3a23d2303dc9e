// What messages of a pipeline lose to one another between nodes.
//
// What the last stage of a node sends forward and what its first one sends back leave by one wire, and what both its
// neighbours send reaches it by one; a stage that has its nodes to itself sends both ways by it. As long as several
// messages are on one wire each has as much of it, and a message goes as fast as the fuller of its two wires lets it:
// max-min fairness, where no wire has more than two. Which of them meet is a matter of the schedule's phase, so they
// are followed in the order of time, each turn as long as it is by itself. What a message has lost is then added to it
// in the walks over a schedule (schedule_walk.h, closed/schedule_form.h).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "oracle/cost/price.h"
#include "oracle/plan/pipeline/schedules.h"

namespace sibyl {

// Of one stage; seconds.
struct StageSends {
  struct Message {
    double wire = 0, rest = 0;  // on the wire, had it this to itself; and what it takes to set out and to arrive
    Passage passage;
    [[nodiscard]] double alone() const { return wire + rest; }
  };
  Message forward, backward;
  double turns = 0;  // a forward and a backward one
};
StageSends::Message sent_by(double alone, const WireUse& wire, const Passage& passage);

// Of as many micro-batches as there are coordinates.
constexpr std::size_t turns_of_a_round(std::size_t stages, std::size_t coordinates) { return 2 * stages * coordinates; }
// A formula follows no more; so it takes some milliseconds at most.
inline constexpr std::size_t turns_followed = 1 << 14;

// Do messages share a wire, and are any long enough beside their stage's turns? Short ones seldom meet, and lose
// little: following them would cost a search more than it tells. So it would in pipelines so deep that they are not
// full and steady, after three rounds, within the turns that are followed.
bool crowded(const std::vector<StageSends>& stages, std::size_t coordinates);

// Seconds, by coordinate and way: of each message in the order in which they are sent. Messages that take no time are
// none.
struct LostToOthers {
  std::vector<std::array<std::vector<double>, 2>> of;
  [[nodiscard]] double at(std::size_t coordinate, bool forward, std::size_t nth) const {
    return of[coordinate][forward ? 0 : 1][nth];
  }
};
// `length`: of a turn by itself.
LostToOthers lost_to_others(const Turns& turns, const std::vector<StageSends>& stages, int micro_batches,
                            const std::function<double(const Turn&)>& length);

}  // namespace sibyl

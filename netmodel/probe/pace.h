// What a probe that goes from short messages to long ones may expect of the next: so that a budget is spent on what can
// be done within it, and on what anyone will ask for.
#pragma once

#include <map>
#include <tuple>
#include <variant>

#include "netmodel/probe/tasks.h"

namespace sibyl::probe {

class Pace {
 public:
  // Once took so many seconds. Below 64 KiB nothing is learnt: bytes tell little of those.
  void note(const Task& task, double seconds);

  // Seconds of once: as much longer than the last of its kind as it has more bytes; where none was noted, by the
  // slowest of any. 0: nothing was noted.
  [[nodiscard]] double foreseen(const Task& task) const;

  // A collective by an algorithm that took twice as long as the communicator's own choice: of longer messages it is not
  // the choice either.
  [[nodiscard]] bool hopeless(const Task& task) const;

 private:
  // What is timed at several sizes. A single pair is taken for any of its distance, and tells nothing of others.
  using Line = std::variant<std::tuple<bool, int, bool>, std::tuple<Collective, Algorithm, GroupPlacement>>;
  static Line line_of(const Task& task);

  std::map<Line, double> seconds_per_byte_;  // of the last
};

}  // namespace sibyl::probe

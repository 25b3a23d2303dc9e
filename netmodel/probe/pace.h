// What a probe may expect of the next exchange, from those before it: so that a budget is spent on what can be done
// within it, and on what anyone will ask for.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "netmodel/probe/tasks.h"

namespace sibyl::probe {

class Pace {
 public:
  // Once took so many seconds. Below 64 KiB nothing is learnt: bytes tell little of those.
  void note(const Task& task, double seconds);

  // Seconds of once: as much longer than the longest message of its kind as it has more bytes, and no less than a
  // shorter one took; where none was noted, by the slowest of any. 0: nothing was noted.
  [[nodiscard]] double foreseen(const Task& task) const;

  // A collective by an algorithm that took twice as long as the communicator's own choice, of the longest message that
  // both had: of longer ones it is not the choice either.
  [[nodiscard]] bool hopeless(const Task& task) const;

  // What is timed at several sizes. A single pair is taken for any of its distance, and tells nothing of others.
  using Line = std::variant<std::tuple<bool, int, bool>, std::tuple<Collective, Algorithm, GroupPlacement>>;
  static Line line_of(const Task& task);

 private:
  std::map<Line, std::map<double, double>> noted_;  // seconds, by bytes
};

// The order in which tasks are timed. First what is too short to be foreseen, by its bytes. Then whatever is over
// soonest, where a size between two others counts for longer than it takes: of each line every fourth size counts for
// its time, one in the middle of these for four times that, one beside it for sixteen. So where a budget ends early it
// is the grid of sizes that stays coarse, and what takes longest that is left out, which formulas extend best. A slow
// wire does not keep long messages inside nodes from being timed, nor the many sizes below 1 MiB those above it.
class Upcoming {
 public:
  struct Next {
    Task task;
    bool sparse = false;  // one of every fourth
  };

  explicit Upcoming(std::vector<Task> tasks);

  [[nodiscard]] std::size_t left() const { return left_; }
  [[nodiscard]] std::optional<Next> take(const Pace& pace);  // none: no more are left

 private:
  struct Entry {
    Task task;
    double counts_for = 1;  // times its time
  };
  std::deque<Task> short_;
  std::map<Pace::Line, std::deque<Entry>> lines_;  // each in its order
  std::size_t left_;
};

}  // namespace sibyl::probe

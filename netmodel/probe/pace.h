// What a probe that goes from short messages to long ones may expect of the next: so that a budget is spent on what can
// be done within it, and on what anyone will ask for.
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

  // Seconds of once: as much longer than the last of its kind as it has more bytes; where none was noted, by the
  // slowest of any. 0: nothing was noted.
  [[nodiscard]] double foreseen(const Task& task) const;

  // A collective by an algorithm that took twice as long as the communicator's own choice: of longer messages it is not
  // the choice either.
  [[nodiscard]] bool hopeless(const Task& task) const;

  // What is timed at several sizes. A single pair is taken for any of its distance, and tells nothing of others.
  using Line = std::variant<std::tuple<bool, int, bool>, std::tuple<Collective, Algorithm, GroupPlacement>>;
  static Line line_of(const Task& task);

 private:
  std::map<Line, double> seconds_per_byte_;  // of the last
};

// The order in which tasks are timed. First what is too short to be foreseen, by its bytes; then whatever is over
// soonest, each line from short to long. So what a budget cuts off is what takes longest, and what formulas extend
// best: a slow wire does not keep long messages inside nodes from being timed.
class Upcoming {
 public:
  explicit Upcoming(std::vector<Task> tasks);

  [[nodiscard]] std::size_t left() const { return left_; }
  [[nodiscard]] std::optional<Task> take(const Pace& pace);  // none: no more are left

 private:
  std::deque<Task> short_;
  std::map<Pace::Line, std::deque<Task>> lines_;
  std::size_t left_;
};

}  // namespace sibyl::probe

#include "netmodel/probe/pace.h"

#include <algorithm>
#include <utility>

namespace sibyl::probe {
namespace {

constexpr double least_bytes = 65536, hopelessly_slow = 2.0;

}  // namespace

Pace::Line Pace::line_of(const Task& task) {
  if (const auto* message = std::get_if<PointToPointSample>(&task))
    return std::tuple(message->same_node, message->pairs, message->both_ways);
  if (const auto* pair = std::get_if<PairSample>(&task)) return std::tuple(pair->same_node, 1, false);
  const auto& sample = std::get<CollectiveSample>(task);
  return std::tuple(sample.collective, sample.algorithm, sample.placement);
}

void Pace::note(const Task& task, double seconds) {
  if (bytes_of(task) >= least_bytes && !std::holds_alternative<PairSample>(task))
    seconds_per_byte_[line_of(task)] = seconds / bytes_of(task);
}

double Pace::foreseen(const Task& task) const {
  const auto own = seconds_per_byte_.find(line_of(task));
  if (own != seconds_per_byte_.end()) return own->second * bytes_of(task);
  double slowest = 0.0;
  for (const auto& [line, rate] : seconds_per_byte_) slowest = std::max(slowest, rate);
  return slowest * bytes_of(task);
}

bool Pace::hopeless(const Task& task) const {
  const auto* sample = std::get_if<CollectiveSample>(&task);
  if (sample == nullptr || sample->algorithm == Algorithm::automatic) return false;
  CollectiveSample chosen = *sample;
  chosen.algorithm = Algorithm::automatic;
  const auto own = seconds_per_byte_.find(line_of(task)), best = seconds_per_byte_.find(line_of(chosen));
  return own != seconds_per_byte_.end() && best != seconds_per_byte_.end() &&
         own->second > hopelessly_slow * best->second;
}

Upcoming::Upcoming(std::vector<Task> tasks) : left_(tasks.size()) {
  std::ranges::stable_sort(tasks, {}, bytes_of);
  for (Task& task : tasks)
    (bytes_of(task) < least_bytes ? short_ : lines_[Pace::line_of(task)]).push_back(std::move(task));
}

std::optional<Task> Upcoming::take(const Pace& pace) {
  std::deque<Task>* from = short_.empty() ? nullptr : &short_;
  double least = 0;
  for (auto line = lines_.begin(); short_.empty() && line != lines_.end();) {
    if (line->second.empty()) {
      line = lines_.erase(line);
      continue;
    }
    const double foreseen = pace.foreseen(line->second.front());
    if (from == nullptr || foreseen < least) from = &line->second, least = foreseen;
    ++line;
  }
  if (from == nullptr) return std::nullopt;
  --left_;
  std::optional<Task> next(std::move(from->front()));
  from->pop_front();
  return next;
}

}  // namespace sibyl::probe

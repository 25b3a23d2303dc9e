#include "netmodel/probe/pace.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sibyl::probe {
namespace {

constexpr double least_bytes = 65536, hopelessly_slow = 2.0;

// Of a line's sizes, ascending, the one in this place.
double counts_for(std::size_t place) {
  constexpr double for_each_halving = 4;
  if (place % 4 == 0) return 1;
  return place % 2 == 0 ? for_each_halving : for_each_halving * for_each_halving;
}

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
    noted_[line_of(task)][bytes_of(task)] = seconds;
}

double Pace::foreseen(const Task& task) const {
  const double bytes = bytes_of(task);
  const auto own = noted_.find(line_of(task));
  if (own == noted_.end()) {
    double slowest = 0.0;
    for (const auto& [line, times] : noted_)
      slowest = std::max(slowest, times.rbegin()->second / times.rbegin()->first);
    return slowest * bytes;
  }
  const std::map<double, double>& times = own->second;
  const double at_rate = times.rbegin()->second / times.rbegin()->first * bytes;
  const auto longer = times.upper_bound(bytes);
  return longer == times.begin() ? at_rate : std::max(at_rate, std::prev(longer)->second);
}

bool Pace::hopeless(const Task& task) const {
  const auto* sample = std::get_if<CollectiveSample>(&task);
  if (sample == nullptr || sample->algorithm == Algorithm::automatic) return false;
  CollectiveSample chosen = *sample;
  chosen.algorithm = Algorithm::automatic;
  const auto own = noted_.find(line_of(task)), best = noted_.find(line_of(chosen));
  if (own == noted_.end() || best == noted_.end()) return false;
  for (auto time = own->second.rbegin(); time != own->second.rend(); ++time)
    if (const auto same = best->second.find(time->first); same != best->second.end())
      return time->second > hopelessly_slow * same->second;
  return false;
}

// Pairs, all of one size, are no sizes of the line that they are taken for.
Upcoming::Upcoming(std::vector<Task> tasks) : left_(tasks.size()) {
  std::ranges::stable_sort(tasks, {}, bytes_of);
  std::map<Pace::Line, std::size_t> places;
  for (Task& task : tasks)
    if (bytes_of(task) < least_bytes) {
      short_.push_back(std::move(task));
    } else {
      const Pace::Line line = Pace::line_of(task);
      const double counts = std::holds_alternative<PairSample>(task) ? 1.0 : counts_for(places[line]++);
      lines_[line].push_back({std::move(task), counts});
    }
  for (auto& [key, line] : lines_)
    std::ranges::stable_sort(line, {}, [](const Entry& entry) { return bytes_of(entry.task) * entry.counts_for; });
}

std::optional<Upcoming::Next> Upcoming::take(const Pace& pace) {
  if (left_ == 0) return std::nullopt;
  --left_;
  if (!short_.empty()) {
    Next next{std::move(short_.front())};
    short_.pop_front();
    return next;
  }
  std::deque<Entry>* from = nullptr;
  double least = 0;
  for (auto& [key, line] : lines_) {
    if (line.empty()) continue;
    const double counted = pace.foreseen(line.front().task) * line.front().counts_for;
    if (from == nullptr || counted < least) from = &line, least = counted;
  }
  Entry& first = from->front();
  const bool sparse = first.counts_for == 1 && !std::holds_alternative<PairSample>(first.task);
  Next next{std::move(first.task), sparse};
  from->pop_front();
  return next;
}

}  // namespace sibyl::probe

#include "netmodel/probe/meetings.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/statistics.h"
#include "netmodel/probe/timing.h"

namespace sibyl {
namespace {

constexpr std::size_t fewest_meetings = 64, most_meetings = 1024, fewest_windows = 8;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// How much of each rank's time is computing, by meeting; the first one follows nothing.
std::vector<std::vector<double>> computing(const std::vector<MeetingTimes>& ranks) {
  std::vector<std::vector<double>> result;
  for (const MeetingTimes& rank : ranks) {
    std::vector<double>& own = result.emplace_back();
    for (std::size_t i = 1; i < rank.begin.size(); ++i) own.push_back(rank.begin[i] - rank.end[i - 1]);
  }
  return result;
}

MeetingMeasurement::Window window_of(const std::vector<std::vector<double>>& computing, std::size_t meetings) {
  std::vector<double> means, late;
  for (std::size_t first = 0; first + meetings <= computing.front().size(); first += meetings) {
    std::vector<double> sums;
    for (const std::vector<double>& rank : computing) {
      const auto begin = rank.begin() + static_cast<std::ptrdiff_t>(first);
      sums.push_back(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(meetings), 0.0));
    }
    means.push_back(mean(sums));
    late.push_back(std::ranges::max(sums) - means.back());
  }
  return {Seconds{mean(means)}, Seconds{mean(late)}};
}

}  // namespace

MeetingMeasurement meetings_of(const std::vector<MeetingTimes>& ranks) {
  const std::vector<std::vector<double>> alone = computing(ranks);
  MeetingMeasurement result;
  for (std::size_t n = 1; n * fewest_windows <= alone.front().size(); n *= 2)
    result.windows.push_back(window_of(alone, n));
  std::vector<double> spent, shortest;
  for (std::size_t i = 1; i < ranks.front().begin.size(); ++i) {
    std::vector<double> of_ranks;
    for (const MeetingTimes& rank : ranks) of_ranks.push_back(rank.end[i] - rank.begin[i]);
    spent.push_back(mean(of_ranks));
    shortest.push_back(std::ranges::min(of_ranks));
  }
  const double waited = result.windows.empty() ? 0.0 : result.windows.front().late.value();
  result.longer = Seconds{std::max(0.0, mean(spent) - median(shortest) - waited)};
  return result;
}

MeetingMeasurement probe_meetings(Communicator& world, const std::function<void()>& compute,
                                  const std::function<void()>& exchange, Seconds budget) {
  const auto meet = [&](std::size_t times) {
    MeetingTimes own;
    world.barrier();
    for (std::size_t i = 0; i < times; ++i) {
      compute();
      own.begin.push_back(probe::now());
      exchange();
      own.end.push_back(probe::now());
    }
    return own;
  };
  meet(3);  // connections are made, memory is touched
  constexpr std::size_t pilot = 8;
  const MeetingTimes first = meet(pilot);
  const double each = probe::slowest(world, (first.end.back() - first.begin.front()) / (pilot - 1));
  const auto meetings =
      std::clamp(static_cast<std::size_t>(budget.value() / std::max(each, 1e-6)), fewest_meetings, most_meetings);
  const MeetingTimes own = meet(meetings);
  std::vector<MeetingTimes> ranks(static_cast<std::size_t>(world.size()));
  for (std::size_t i = 0; i < meetings; ++i) {
    const std::vector<double> begins = world.gather_doubles(own.begin[i]), ends = world.gather_doubles(own.end[i]);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      ranks[rank].begin.push_back(begins[rank]), ranks[rank].end.push_back(ends[rank]);
  }
  return meetings_of(ranks);
}

}  // namespace sibyl

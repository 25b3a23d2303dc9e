#include "netmodel/probe/timing.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <span>
#include <thread>

#include "base/statistics.h"

namespace sibyl::probe {
namespace {

constexpr double batch_seconds = 0.01;  // ranks leave a barrier within some 0.1 ms of each other
constexpr int fewest_batches = 3, most_repeats = 500;

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Timing summary(const std::vector<double>& values) {
  const double middle = median(values);
  return {middle, relative_spread(values, middle)};
}

double slowest(const Communicator& world, double value) { return std::ranges::max(world.gather_doubles(value)); }

Timing timed(Communicator& world, const std::function<void()>& once, double allowance, int most) {
  const auto batch = [&](int repeats) {
    world.barrier();
    const double begin = now();
    for (int i = 0; i < repeats; ++i) once();
    return slowest(world, now() - begin) / repeats;
  };
  batch(1);  // connections are made, buffers touched
  const double pilot = std::max(1e-7, std::min(batch(1), batch(2)));
  const int repeats = std::clamp(static_cast<int>(batch_seconds / pilot), 1, most_repeats);
  const int batches =
      std::clamp(static_cast<int>(allowance / (repeats * pilot)), fewest_batches, std::max(most, fewest_batches));
  std::vector<double> times;
  for (int i = 0; i < batches; ++i) times.push_back(batch(repeats));
  return summary(times);
}

double offset_to_first(Communicator& world, const std::function<double()>& clock) {
  constexpr int questions = 8;
  const auto bytes_of = [](double& value) { return std::as_writable_bytes(std::span(&value, 1)); };
  double offset = 0.0;
  for (int known = 1; known < world.size(); known *= 2) {
    const int answers = world.rank() + known, asks = world.rank() - known;
    double time = 0.0, shortest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < questions; ++i)
      if (world.rank() < known && answers < world.size()) {
        world.receive(bytes_of(time), answers);
        time = clock() + offset;
        world.send(bytes_of(time), answers);
      } else if (asks >= 0 && asks < known) {
        const double asked = clock();
        world.send(bytes_of(time), asks);
        world.receive(bytes_of(time), asks);
        const double took = clock() - asked;
        if (took >= shortest) continue;
        shortest = took;
        offset = time - (asked + took / 2);
      }
  }
  return offset;
}

double time_of_groups(const std::vector<double>& groups, const std::vector<Interval>& ranks) {
  std::map<double, Interval> last;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (groups[rank] >= 0) {
      Interval& of_group = last.try_emplace(groups[rank], ranks[rank]).first->second;
      of_group.begin = std::max(of_group.begin, ranks[rank].begin);
      of_group.end = std::max(of_group.end, ranks[rank].end);
    }
  double longest = 0;
  for (const auto& [group, interval] : last) longest = std::max(longest, interval.end - interval.begin);
  return longest;
}

int least_runs(double seconds) { return seconds > 0.5 ? 5 : 7; }

Timing timed_apart(Communicator& world, int group, const std::function<void()>& before,
                   const std::function<void()>& once, double allowance, int most,
                   const std::function<double()>& clock) {
  // What tells the last of many ranks to begin must be there before the first one's data, behind which it would wait.
  constexpr double ahead = 2e-3;
  const std::vector<double> groups = world.gather_doubles(group);
  const double offset = offset_to_first(world, clock);
  const auto run = [&] {
    before();
    const double start = std::ranges::max(world.gather_doubles(clock() + offset)) + ahead;
    while (clock() + offset < start) std::this_thread::yield();
    const double begin = clock() + offset;
    once();
    const double end = clock() + offset;
    const std::vector<double> begins = world.gather_doubles(begin), ends = world.gather_doubles(end);
    std::vector<Interval> ranks;
    for (std::size_t rank = 0; rank < begins.size(); ++rank) ranks.push_back({begins[rank], ends[rank]});
    return time_of_groups(groups, ranks);
  };
  run();  // connections are made
  const double start = now();
  run();
  const double pilot = std::max(1e-7, slowest(world, now() - start));
  const int fewest = least_runs(pilot) - 2;  // without the two before
  const int runs = std::clamp(static_cast<int>(allowance / pilot), fewest, std::max(most, fewest));
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(run());
  return summary(times);
}

}  // namespace sibyl::probe

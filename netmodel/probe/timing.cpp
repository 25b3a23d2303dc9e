#include "netmodel/probe/timing.h"

#include <algorithm>
#include <chrono>
#include <map>

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

double time_of_groups(const std::vector<double>& groups, const std::vector<double>& took) {
  std::map<double, double> quickest;
  for (std::size_t rank = 0; rank < took.size(); ++rank)
    if (groups[rank] >= 0) {
      const auto [of_group, first] = quickest.try_emplace(groups[rank], took[rank]);
      if (!first) of_group->second = std::min(of_group->second, took[rank]);
    }
  double longest = 0;
  for (const auto& [group, seconds] : quickest) longest = std::max(longest, seconds);
  return longest;
}

Timing timed_apart(Communicator& world, int group, const std::function<void()>& before,
                   const std::function<void()>& once, double allowance, int most) {
  constexpr int fewest = 5;
  const std::vector<double> groups = world.gather_doubles(group);
  const auto run = [&] {
    before();
    world.barrier();
    const double begin = now();
    once();
    return time_of_groups(groups, world.gather_doubles(now() - begin));
  };
  run();  // connections are made
  const double start = now();
  run();
  const double pilot = std::max(1e-7, slowest(world, now() - start));
  const int runs = std::clamp(static_cast<int>(allowance / pilot), fewest, std::max(most, fewest));
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(run());
  return summary(times);
}

}  // namespace sibyl::probe

#include "netmodel/probe/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <thread>

#include "base/statistics.h"
#include "comm/prompt_thread.h"
#include "comm/waiting.h"

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

bool any_stops(const Communicator& world, const std::function<bool()>& stop) {
  return slowest(world, stop && stop() ? 1.0 : 0.0) > 0;
}

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

double mean_of_groups(const std::vector<double>& groups, const std::vector<double>& seconds) {
  std::map<double, std::pair<double, int>> sums;
  for (std::size_t rank = 0; rank < groups.size(); ++rank)
    if (groups[rank] >= 0) {
      auto& [sum, count] = sums[groups[rank]];
      sum += seconds[rank];
      ++count;
    }
  double longest = 0;
  for (const auto& [group, of_group] : sums) longest = std::max(longest, of_group.first / of_group.second);
  return longest;
}

int least_runs(double seconds) { return seconds > 0.5 ? 4 : 6; }

bool median_is_known(const std::vector<double>& values) {
  constexpr double of_a_median = 1.2533, within = 0.02;  // sqrt(pi / 2), of values that are distributed normally
  return of_a_median * summary(values).spread <= within * std::sqrt(static_cast<double>(values.size()));
}

namespace {

// The one clock of a series, and its common starts.
class Together {
 public:
  Together(Communicator& world, int group, const std::function<double()>& clock)
      : world_(world), clock_(clock), groups_(world.gather_doubles(group)), offset_(offset_to_first(world, clock)) {}

  [[nodiscard]] double now() const { return clock_() + offset_; }
  [[nodiscard]] const std::vector<double>& groups() const { return groups_; }
  // `once`, begun by all ranks at an agreed time; when this rank began it and was done.
  Interval begin(const std::function<void()>& once) const {
    // What tells the last of many ranks to begin must be there before the first one's data, behind which it would wait.
    constexpr double ahead = 2e-3;
    const double start = std::ranges::max(world_.gather_doubles(now())) + ahead;
    // Ranks that share processors sleep: while one of them spins, another, or the kernel's thread that hands on what
    // waits for a shaped wire, may have to wait for the scheduler's next tick, 4 ms.
    constexpr double waking = 1e-4;
    comm::precise_sleeps();
    if (const double left = start - now() - waking; left > 0 && !comm::may_look())
      std::this_thread::sleep_for(std::chrono::duration<double>(left));
    while (now() < start) std::this_thread::yield();
    const double begin = now();
    once();
    return {begin, now()};
  }
  [[nodiscard]] double took(const Interval& own) const {
    const std::vector<double> begins = world_.gather_doubles(own.begin), ends = world_.gather_doubles(own.end);
    std::vector<Interval> ranks;
    for (std::size_t rank = 0; rank < begins.size(); ++rank) ranks.push_back({begins[rank], ends[rank]});
    return time_of_groups(groups_, ranks);
  }

 private:
  Communicator& world_;
  const std::function<double()>& clock_;
  std::vector<double> groups_;
  double offset_;
};

}  // namespace

Timing timed_apart(Communicator& world, int group, const std::function<void()>& between,
                   const std::function<void()>& once, double allowance, int most, const std::function<double()>& clock,
                   const std::function<bool()>& stop) {
  const Together together(world, group, clock);
  // What follows an exchange in a step is no message, which would be in the way of ranks that are not done yet.
  const auto run = [&] {
    const Interval own = together.begin(once);
    between();
    return together.took(own);
  };
  between();
  run();  // connections are made
  const double start = now();
  std::vector<double> times{run()};
  const double pilot = std::max(1e-7, slowest(world, now() - start));
  const int fewest = least_runs(pilot) - 1;
  // Long exchanges need what short ones leave of their shares.
  constexpr int longer = 8;
  constexpr double of_the_share = 0.25;
  const int usual = std::max(most, fewest);
  const auto fit = [&](double seconds) { return static_cast<int>(seconds / pilot); };
  const int runs = std::clamp(fit(allowance), fewest, usual);
  const int at_most = std::clamp(fit(of_the_share * allowance), runs, longer * usual);
  const auto enough = [&] {
    const auto done = static_cast<int>(times.size());
    return done >= at_most || (done >= runs && median_is_known(times));
  };
  while (!enough() && !any_stops(world, stop)) times.push_back(run());
  return summary(times);
}

double share_in_turn(Communicator& world, int group, const std::function<void(Seconds)>& rest,
                     const std::function<void()>& once, double seconds, int runs,
                     const std::function<double()>& clock) {
  constexpr int in_a_row = 3;
  const Together together(world, group, clock);
  std::vector<double> alone, in_turn;
  for (int run = 0; run < runs; ++run) {
    rest(Seconds{seconds});
    const Interval first = together.begin(once);
    double spent = 0.0;
    for (int i = 0; i < in_a_row; ++i) {
      rest(Seconds{seconds});
      const double begin = together.now();
      once();
      spent += together.now() - begin;
    }
    alone.push_back(together.took(first));
    in_turn.push_back(mean_of_groups(together.groups(), world.gather_doubles(spent / in_a_row)));
  }
  const double whole = median(alone);
  return whole > 0 ? median(in_turn) / whole : 1.0;
}

}  // namespace sibyl::probe

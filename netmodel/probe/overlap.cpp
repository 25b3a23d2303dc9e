#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/prompt_thread.h"
#include "comm/waiting.h"
#include "netmodel/probe/probe.h"
#include "netmodel/probe/timing.h"

namespace sibyl {
namespace {

// Times of `once` until `done`, at least three of them.
template <class Done>
std::vector<double> repeated(const std::function<void()>& once, const Done& done) {
  std::vector<double> times;
  while (times.size() < 3 || !done()) {
    const double begin = probe::now();
    once();
    times.push_back(probe::now() - begin);
  }
  return times;
}

void append(std::vector<double>& to, const std::vector<double>& more) { to.insert(to.end(), more.begin(), more.end()); }

// Times of `compute` beside so many messages, of which one takes what is added to `talking`.
std::vector<double> beside(Communicator& world, const std::function<void()>& compute,
                           const std::function<void()>& communicate, int messages, std::vector<double>& talking) {
  std::atomic<bool> finished{false};
  const std::atomic<bool> compute_runs{true};
  world.barrier();
  std::thread communication([&] {
    comm::run_promptly();  // as the trainer's
    comm::wait_beside(compute_runs);
    const double start = probe::now();
    for (int i = 0; i < messages; ++i) communicate();
    talking.push_back((probe::now() - start) / messages);
    finished = true;
  });
  std::vector<double> times = repeated(compute, [&] { return finished.load(); });
  communication.join();
  if (times.size() > 3) times.pop_back();  // it may have outlived the communication
  return times;
}

// Each of the three in turn: a machine's speed changes from second to second.
constexpr int rounds = 3;
constexpr int most_alone = 50;  // messages by themselves in a round

}  // namespace

OverlapMeasurement probe_overlap(Communicator& world, const std::function<void()>& compute,
                                 const std::function<void()>& communicate, Seconds budget) {
  const double share = budget.value() / (3 * rounds);
  for (int i = 0; i < 3; ++i) compute(), communicate();  // the first ones are slower
  std::vector<double> alone, quiet, together, talking;
  for (int round = 0; round < rounds; ++round) {
    world.barrier();
    const double begin = probe::now();
    append(alone, repeated(compute, [&] { return probe::now() - begin > share; }));
    quiet.push_back(probe::timed_apart(world, 0, compute, communicate, share, most_alone).seconds);
    // All ranks must communicate equally often, so the count is fixed beforehand, and compute goes on until that is
    // done.
    const int messages = std::clamp(static_cast<int>(share / std::max(quiet.front(), 1e-6)), 3, 10'000);
    append(together, beside(world, compute, communicate, messages, talking));
  }
  OverlapMeasurement result;
  result.compute_alone = Seconds{probe::slowest(world, probe::summary(alone).seconds)};
  result.communication_alone = Seconds{probe::summary(quiet).seconds};
  // The mean, for computations that a message interrupts and those that it does not belong to the same step.
  const double mean = std::accumulate(together.begin(), together.end(), 0.0) / static_cast<double>(together.size());
  result.compute_slowdown = std::max(1.0, probe::slowest(world, mean) / result.compute_alone.value());
  result.communication_slowdown =
      std::max(1.0, probe::slowest(world, probe::summary(talking).seconds) / result.communication_alone.value());
  result.spread = probe::slowest(world, std::hypot(probe::summary(together).spread, probe::summary(alone).spread));
  return result;
}

}  // namespace sibyl

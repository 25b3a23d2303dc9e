#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/prompt_thread.h"
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

}  // namespace

OverlapMeasurement probe_overlap(Communicator& world, const std::function<void()>& compute,
                                 const std::function<void()>& communicate, Seconds budget) {
  const double share = budget.value() / 3;
  compute();
  world.barrier();
  const double begin = probe::now();
  const probe::Timing alone = probe::summary(repeated(compute, [&] { return probe::now() - begin > share; }));
  const probe::Timing quiet = probe::timed(world, communicate, share);

  // All ranks must communicate equally often, so the count is fixed beforehand, and compute goes on until that is done.
  const int messages = std::clamp(static_cast<int>(share / std::max(quiet.seconds, 1e-6)), 3, 10'000);
  std::atomic<bool> finished{false};
  double talking = 0.0;
  world.barrier();
  std::thread communication([&] {
    comm::run_promptly();  // as the trainer's
    const double start = probe::now();
    for (int i = 0; i < messages; ++i) communicate();
    talking = (probe::now() - start) / messages;
    finished = true;
  });
  std::vector<double> times = repeated(compute, [&] { return finished.load(); });
  communication.join();
  // The last computation may have outlived the communication.
  if (times.size() > 3) times.pop_back();
  const probe::Timing together = probe::summary(times);

  OverlapMeasurement result;
  result.compute_alone = Seconds{probe::slowest(world, alone.seconds)};
  result.communication_alone = Seconds{quiet.seconds};
  // The mean, for computations that a message interrupts and those that it does not belong to the same step.
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  result.compute_slowdown = std::max(1.0, probe::slowest(world, mean) / result.compute_alone.value());
  result.communication_slowdown = std::max(1.0, probe::slowest(world, talking) / quiet.seconds);
  result.spread = probe::slowest(world, std::hypot(together.spread, alone.spread));
  return result;
}

}  // namespace sibyl

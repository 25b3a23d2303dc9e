// How long two processors take to hand a cache line to each other, again and again: on a virtual machine whose host
// moves its processors between dies the answer changes, and with it what messages within the machine and what is bound
// by memory take (docs/validation/strategies.md). handover_report [SECONDS [PROCESSOR PROCESSOR]]: processors 0 and 1
// unless given; a line for each fifth of a second, with the least and the mean of one way.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

bool run_on(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<std::size_t>(processor), &only);
  return sched_setaffinity(0, sizeof only, &only) == 0;
}

struct Handover {
  double least = std::numeric_limits<double>::infinity(), mean = 0;  // nanoseconds
};

Handover measure(int first, int second) {
  constexpr int rounds = 10'000, at_once = 1'000;  // the least is of so many: some are interrupted
  alignas(128) std::atomic<int> line{0};
  std::thread answers([&] {
    if (!run_on(second)) return;
    for (int i = 0; i < rounds; ++i) {
      while (line.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      line.store(2 * i + 2, std::memory_order_release);
    }
  });
  run_on(first);
  Handover result;
  const Clock::time_point begin = Clock::now();
  double before = 0;
  for (int i = 0; i < rounds; ++i) {
    line.store(2 * i + 1, std::memory_order_release);
    while (line.load(std::memory_order_acquire) != 2 * i + 2) {
    }
    if ((i + 1) % at_once != 0) continue;
    const double now = seconds_since(begin);
    result.least = std::min(result.least, (now - before) / (2 * at_once) * 1e9);
    before = now;
  }
  result.mean = before / (2 * rounds) * 1e9;
  answers.join();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  const int first = argc > 3 ? std::atoi(argv[2]) : 0, second = argc > 3 ? std::atoi(argv[3]) : 1;
  if (!(seconds > 0)) {
    fmt::print(stderr, "handover_report: '{}' is no time in seconds\n", argv[1]);
    return 2;
  }
  if (first == second || !run_on(second) || !run_on(first)) {
    fmt::print(stderr, "handover_report: needs two processors that it may run on, not {} and {}\n", first, second);
    return 2;
  }
  for (const Clock::time_point begin = Clock::now(); seconds_since(begin) < seconds;) {
    const double when = seconds_since(begin);
    const auto [least, mean] = measure(first, second);
    fmt::print("{:6.1f} s  least {:4.0f} ns  mean {:4.0f} ns\n", when, least, mean);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

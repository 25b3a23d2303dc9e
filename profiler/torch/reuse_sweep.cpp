#include "profiler/torch/reuse_sweep.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <span>
#include <thread>

#include "base/statistics.h"
#include "profiler/torch/cache_line.h"
#include "profiler/torch/timing.h"

namespace sibyl {
namespace {

constexpr double smallest_step = 4.0 * 1024 * 1024, nearest = 256.0 * 1024;  // the latter also a block's bytes
constexpr int steps_to_learn = 8, steps_that_count = 8, runs_of_an_age = 9;
constexpr double tensor_bytes = 4.0 * 1024 * 1024;   // more than what a core keeps to itself
constexpr std::size_t tensors = 2 * runs_of_an_age;  // of a thread: each counts once
constexpr std::array ages{0.0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128};  // seconds

// Of a thread, by powers of two of distances from its nearest block on: seconds that blocks took.
using ByDistance = std::vector<std::vector<double>>;

// Walks through the memory and back, block by block.
void walk(std::span<CacheLine> memory, std::size_t block, ByDistance& times) {
  write_lines(memory);
  for (std::size_t back = 1, blocks = memory.size() / block; back <= blocks; ++back) {
    const double start = now();
    read_lines(memory.subspan(memory.size() - back * block, block));
    const double time = now() - start;
    const auto power = static_cast<std::size_t>(std::lround(std::log2(static_cast<double>(back))));
    if (times.size() <= power) times.resize(power + 1);
    times[power].push_back(time);
  }
}

std::vector<double> medians_of_thread(std::span<CacheLine> memory, std::size_t block) {
  ByDistance times;
  for (int step = -steps_to_learn; step < steps_that_count; ++step) {
    if (step == 0) times.clear();
    walk(memory, block, times);
  }
  std::vector<double> medians;
  for (const std::vector<double>& at_distance : times) medians.push_back(median(at_distance));
  return medians;
}

// What a thread takes to read its part of a tensor, each time of another.
double median_at_age(std::span<CacheLine> memory, std::size_t lines, const LastingSample& how) {
  std::vector<double> times;
  std::size_t next = 0;
  for (int run = 0; run < runs_of_an_age; ++run) {
    const std::span<CacheLine> tensor = memory.subspan(next, lines), other = memory.subspan(next + lines, lines);
    next = next + 4 * lines > memory.size() ? 0 : next + 2 * lines;
    if (how.touches > 0) write_lines(tensor);
    for (int touch = 1; touch < how.touches; ++touch) read_lines(tensor);
    write_lines(other);  // out of what the core keeps to itself
    const double touched = now();
    while (now() - touched < how.age.value()) {
    }
    const double start = now();
    read_lines(tensor);
    times.push_back(now() - start);
  }
  return median(times);
}

// Each thread's own part; the slowest counts, as it does in a kernel. `medians_of`: of one thread's memory.
std::vector<double> slowest_medians(std::span<CacheLine> memory, std::size_t threads,
                                    const std::function<std::vector<double>(std::span<CacheLine>)>& medians_of) {
  std::barrier start(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::vector<double>> medians(threads);
  const std::size_t part = memory.size() / threads;
  const auto work = [&](std::size_t i) {
    start.arrive_and_wait();
    medians[i] = medians_of(memory.subspan(i * part, part));
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
  std::vector<double> slowest = medians.front();
  for (const std::vector<double>& times : medians)
    for (std::size_t d = 0; d < slowest.size(); ++d) slowest[d] = std::max(slowest[d], times[d]);
  return slowest;
}

}  // namespace

std::vector<ReuseSample> reuse_sweep(Bytes largest, int threads, const std::function<void()>& together) {
  const auto count = static_cast<std::size_t>(threads);
  const auto lines = [](double bytes) { return static_cast<std::size_t>(bytes) / sizeof(CacheLine); };
  const std::size_t block = std::max<std::size_t>(1, lines(nearest) / count);
  std::vector<ReuseSample> samples;
  std::vector<CacheLine> memory(lines(largest.value()));
  for (double step = largest.value(); step >= smallest_step; step /= 2) {
    together();
    double distance = nearest;
    const auto medians_of = [&](std::span<CacheLine> part) { return medians_of_thread(part, block); };
    for (const double time : slowest_medians(std::span(memory).first(lines(step)), count, medians_of)) {
      samples.push_back({Bytes{step}, Bytes{std::min(distance, step)}, Bytes{nearest} / Seconds{time}});
      distance *= 2;
    }
  }
  return samples;
}

std::vector<LastingSample> lasting_sweep(Bytes largest, int threads, const std::function<void()>& together) {
  const auto count = static_cast<std::size_t>(threads);
  constexpr auto lines = static_cast<std::size_t>(tensor_bytes) / sizeof(CacheLine);
  std::vector<CacheLine> memory(
      std::max(static_cast<std::size_t>(largest.value()) / sizeof(CacheLine), tensors * lines * count));
  // The first are read from memory that was last written, all of it, when it was taken.
  std::vector<LastingSample> samples{{0, {}, {}}};
  for (const double age : ages) samples.push_back({2, Seconds{age}, {}});
  for (LastingSample& sample : samples) {
    together();
    const auto median_of = [&](std::span<CacheLine> part) { return std::vector{median_at_age(part, lines, sample)}; };
    sample.rate =
        static_cast<double>(count) * Bytes{tensor_bytes} / Seconds{slowest_medians(memory, count, median_of).front()};
  }
  return samples;
}

}  // namespace sibyl

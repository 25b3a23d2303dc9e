#include "profiler/torch/read_sweep.h"

#include <algorithm>
#include <barrier>
#include <limits>
#include <thread>

#include "profiler/torch/cache_line.h"
#include "profiler/torch/timing.h"

namespace sibyl {
namespace {

constexpr int rounds = 3;
constexpr double slice = 0.015;            // seconds at least for each size in a round: a disturbance lasts shorter
constexpr double shortest_reading = 1e-4;  // of what the clock is read around

// The shortest pass over these lines, a pass being so many readings that the clock resolves it. One pass brings
// in what fits, so what may fit takes two at least, however long they are.
double best_pass(std::span<const CacheLine> lines, int passes) {
  const double start = now();
  read_lines(lines);
  double best = now() - start;
  const int readings = 1 + static_cast<int>(shortest_reading / std::max(best, 1e-7));
  for (int done = 1; done < passes || now() - start < slice; ++done) {
    const double before = now();
    for (int i = 0; i < readings; ++i) read_lines(lines);
    best = std::min(best, (now() - before) / readings);
  }
  return best;
}

// Each thread's own part; the slowest counts, as it does in a kernel.
double best_of_threads(std::span<const CacheLine> lines, int threads, int passes) {
  const auto count = static_cast<std::size_t>(threads);
  std::vector<double> times(count);
  std::barrier start(threads);
  const auto work = [&](std::size_t i) {
    const std::size_t begin = lines.size() * i / count, end = lines.size() * (i + 1) / count;
    start.arrive_and_wait();
    times[i] = best_pass(lines.subspan(begin, end - begin), passes);
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < count; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
  return *std::max_element(times.begin(), times.end());
}

}  // namespace

std::vector<ReadSample> read_sweep(std::span<const Bytes> sizes, int threads, const std::function<void()>& together) {
  std::vector<ReadSample> sweep;
  for (const Bytes size : sizes) sweep.push_back({size, Seconds{std::numeric_limits<double>::infinity()}});
  std::sort(sweep.begin(), sweep.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (sweep.empty()) return sweep;
  const std::vector<CacheLine> lines(static_cast<std::size_t>(sweep.front().bytes.value()) / sizeof(CacheLine));
  for (int round = 0; round < rounds; ++round)
    for (ReadSample& sample : sweep) {
      const auto count = static_cast<std::size_t>(sample.bytes.value()) / sizeof(CacheLine);
      const int passes = 2 * count > lines.size() ? 1 : 2;  // more than half of the largest fits nowhere
      together();
      const double time = best_of_threads(std::span(lines).first(count), threads, passes);
      sample.time = std::min(sample.time, Seconds{time});
    }
  std::reverse(sweep.begin(), sweep.end());
  return sweep;
}

}  // namespace sibyl

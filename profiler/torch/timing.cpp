#include "profiler/torch/timing.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <fstream>
#include <string>

#include "base/statistics.h"

namespace sibyl {
namespace {

// Walks through a buffer of its own, a cache line at a time, going on where it stopped. It writes: a training step
// leaves the cache full of modified lines, whose eviction the next kernel pays for.
class Padding {
 public:
  explicit Padding(const Rotation& rotation) : lines_(rotation.padding.value() > 0 ? line_count(rotation.lap) : 0) {}

  void touch(Bytes bytes) {
    if (lines_.empty()) return;
    for (std::size_t n = line_count(bytes); n > 0; --n) {
      lines_[next_].word = lines_[next_].word + 1;
      if (++next_ == lines_.size()) next_ = 0;
    }
  }

 private:
  struct alignas(64) Line {
    volatile std::uint64_t word = 0;
  };
  static std::size_t line_count(Bytes bytes) { return static_cast<std::size_t>(bytes.value() / sizeof(Line)) + 1; }

  std::vector<Line> lines_;
  std::size_t next_ = 0;
};

}  // namespace

Rotation plan_rotation(Bytes one_copy, const TimingOptions& options) {
  if (options.cached) return {1, Bytes{}, one_copy};
  const Bytes cache = options.cache.value() > 0 ? options.cache : last_level_cache();
  const double goal = 2.0 * cache.value() + 1.0, one = std::max(one_copy.value(), 1.0);
  double copies = std::clamp(std::ceil(goal / one), 1.0, static_cast<double>(options.most_copies));
  copies = std::max(1.0, std::min(copies, std::floor(options.most_memory.value() / one)));
  const double padding = std::max(0.0, goal / copies - one);
  return {static_cast<int>(copies), Bytes{padding}, Bytes{copies * (one + padding)}};
}

Bytes last_level_cache() {
  // sysfs before sysconf: on virtual machines the latter has been seen to report the whole host's cache.
  double largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream size("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    double value = 0;
    char unit = 0;
    if (size >> value >> unit) largest = std::max(largest, value * (unit == 'M' ? 1024.0 * 1024 : 1024));
  }
  if (largest > 0) return Bytes{largest};
  for (const int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long bytes = sysconf(name); bytes > 0) return Bytes{static_cast<double>(bytes)};
  return Bytes{32.0 * 1024 * 1024};
}

bool median_is_known(std::span<const double> values, double precision) {
  // The median lies between the order statistics n/2 ± 0.98 sqrt(n) with 95 % confidence (the binomial's normal
  // approximation); below 6 values no pair of them encloses it so surely.
  const double n = static_cast<double>(values.size());
  if (n < 6) return false;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double reach = 0.98 * std::sqrt(n);
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - reach)));
  const auto high = std::min(sorted.size() - 1, static_cast<std::size_t>(std::ceil(n / 2 + reach)));
  return sorted[high] - sorted[low] <= 2.0 * precision * median(sorted);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

namespace {

// What runs took, those that page-faulted apart.
struct Timings {
  std::vector<double> steady, faulted;
};

class Laps {
 public:
  Laps(const TimedWork& work, const Rotation& rotation, const TimingOptions& options)
      : work_(work), rotation_(rotation), faults_(options.faults ? options.faults : page_faults), padding_(rotation) {}

  void warm_up(int most) {
    for (int n = 0; n < most && failure_.empty(); ++n)
      if (run().faulted.empty()) return;
  }
  void time() {
    const Timings lap = run();
    times_.steady.insert(times_.steady.end(), lap.steady.begin(), lap.steady.end());
    times_.faulted.insert(times_.faulted.end(), lap.faulted.begin(), lap.faulted.end());
  }
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // Those that count. Where so few runs were steady that none of them can be waited for, all.
  [[nodiscard]] std::vector<double> times(int least) const {
    std::vector<double> all = times_.steady;
    const auto runs = all.size() + times_.faulted.size();
    if (static_cast<int>(all.size()) < least && static_cast<int>(runs) >= 4 * least)
      all.insert(all.end(), times_.faulted.begin(), times_.faulted.end());
    return all;
  }

 private:
  Timings run() {
    Timings lap;
    try {
      if (work_.begin_lap) work_.begin_lap();
      for (int copy = 0; copy < rotation_.copies; ++copy) {
        padding_.touch(rotation_.padding);
        if (work_.others) work_.others();
        const std::int64_t before = faults_();
        const double time = work_.measure(copy);
        (faults_() > before ? lap.faulted : lap.steady).push_back(time);
      }
    } catch (const std::exception& exception) {
      failure_ = exception.what();
    }
    return lap;
  }

  const TimedWork& work_;
  const Rotation& rotation_;
  std::function<std::int64_t()> faults_;
  Padding padding_;
  Timings times_;
  std::string failure_;
};

}  // namespace

Result<std::vector<double>> time_laps(const TimedWork& work, const Rotation& rotation, const TimingOptions& options) {
  const auto agree = options.agree ? options.agree : [](Vote vote) { return vote; };
  Laps laps(work, rotation, options);
  laps.warm_up(options.most_warm_ups);
  const double start = now();
  while (true) {
    const std::vector<double> times = laps.times(options.least_runs);
    const bool enough = static_cast<int>(times.size()) >= options.least_runs &&
                        (now() - start >= options.budget.value() || median_is_known(times, options.precision));
    const Vote vote = agree(!laps.failure().empty() ? Vote::failed : enough ? Vote::done : Vote::more);
    if (vote == Vote::done) return times;
    if (vote == Vote::failed) return fail(laps.failure().empty() ? "another rank could not time it" : laps.failure());
    laps.time();
  }
}

}  // namespace sibyl

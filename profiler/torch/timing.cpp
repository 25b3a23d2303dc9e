#include "profiler/torch/timing.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <fstream>
#include <new>
#include <random>
#include <string>

#include "base/statistics.h"
#include "profiler/torch/cache_line.h"

namespace sibyl {
namespace {

// A buffer that it walks through, a cache line at a time. It writes: a training step leaves the cache full of modified
// lines, whose eviction the next kernel pays for. Its memory is no part of the heap, where kernels' own lies as it
// would without it.
class Ballast {
 public:
  explicit Ballast(Bytes bytes) : lines_(static_cast<std::size_t>(bytes.value() / sizeof(CacheLine))) {
    if (lines_ == 0) return;
    void* memory =
        mmap(nullptr, lines_ * sizeof(CacheLine), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<CacheLine*>(memory);
  }
  ~Ballast() {
    if (memory_ != nullptr) munmap(memory_, lines_ * sizeof(CacheLine));
  }
  Ballast(const Ballast&) = delete;
  Ballast& operator=(const Ballast&) = delete;

  void pass_over() { write_lines(std::span(memory_, lines_)); }

 private:
  std::size_t lines_;
  CacheLine* memory_ = nullptr;
};

}  // namespace

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
  Laps(std::span<const TimedWork> works, const TimingOptions& options)
      : options_(options),
        faults_(options.faults ? options.faults : page_faults),
        ballast_(ballast_beside(works, options)) {
    for (const TimedWork& work : works) turns_.push_back({&work, {}, {}});
    for (Turn& turn : turns_) order_.push_back(&turn);
    std::shuffle(order_.begin(), order_.end(), std::mt19937(1));  // the same on all ranks
  }

  void warm_up() {
    bool steady = false;
    for (int n = 0; n < options_.most_warm_ups && !steady; ++n) {
      run(false);
      steady = std::ranges::all_of(turns_, [](const Turn& turn) { return turn.times.faulted.empty(); });
      for (Turn& turn : turns_) turn.times = {};
    }
  }
  void run(bool passing_over) {
    for (Turn* turn : order_)
      guarded(*turn, [&] {
        if (turn->work->begin_lap) turn->work->begin_lap();
      });
    if (passing_over) ballast_.pass_over();
    for (Turn* turn : order_)
      guarded(*turn, [&] {
        if (turn->work->others) turn->work->others();
        const std::int64_t before = faults_();
        const double time = turn->work->measure();
        (faults_() > before ? turn->times.faulted : turn->times.steady).push_back(time);
      });
  }

  [[nodiscard]] bool often_enough() const {
    return all_that_run(
        [&](const std::vector<double>& times) { return static_cast<int>(times.size()) >= options_.least_runs; });
  }
  [[nodiscard]] bool known() const {
    return all_that_run([&](const std::vector<double>& times) { return median_is_known(times, options_.precision); });
  }
  [[nodiscard]] const std::string& failure(std::size_t i) const { return turns_[i].failure; }
  // Those that count. Where so few runs were steady that none of them can be waited for, all.
  [[nodiscard]] std::vector<double> times(std::size_t i) const { return times(turns_[i]); }

 private:
  struct Turn {
    const TimedWork* work;
    Timings times;
    std::string failure;
  };

  static Bytes ballast_beside(std::span<const TimedWork> works, const TimingOptions& options) {
    Bytes lacks = options.lap, room = options.most_memory;
    for (const TimedWork& work : works) {
      lacks -= work.touches;
      room -= work.holds;
    }
    return std::max(Bytes{}, std::min(lacks, room));
  }
  void guarded(Turn& turn, const std::function<void()>& part) {
    if (!turn.failure.empty()) return;
    try {
      part();
    } catch (const std::exception& exception) {
      turn.failure = exception.what();
    }
  }
  [[nodiscard]] std::vector<double> times(const Turn& turn) const {
    std::vector<double> all = turn.times.steady;
    const auto runs = all.size() + turn.times.faulted.size();
    if (static_cast<int>(all.size()) < options_.least_runs && static_cast<int>(runs) >= 4 * options_.least_runs)
      all.insert(all.end(), turn.times.faulted.begin(), turn.times.faulted.end());
    return all;
  }
  [[nodiscard]] bool all_that_run(const std::function<bool(const std::vector<double>&)>& fulfils) const {
    return std::ranges::all_of(turns_, [&](const Turn& turn) { return !turn.failure.empty() || fulfils(times(turn)); });
  }

  const TimingOptions& options_;
  std::function<std::int64_t()> faults_;
  Ballast ballast_;
  std::vector<Turn> turns_;
  std::vector<Turn*> order_;
};

}  // namespace

std::vector<Result<std::vector<double>>> time_laps(std::span<const TimedWork> works, const TimingOptions& options) {
  const auto agree = options.agree ? options.agree : [](Vote vote) { return vote; };
  Laps laps(works, options);
  laps.warm_up();
  const double start = now(), budget = options.budget.value() * static_cast<double>(works.size());
  const auto own_vote = [&] {
    if (!laps.often_enough()) return Vote::least;
    if (options.in_a_hurry && options.in_a_hurry()) return Vote::hurry;
    return now() - start >= budget || laps.known() ? Vote::done : Vote::more;
  };
  for (Vote vote = agree(own_vote()); vote == Vote::more || vote == Vote::least; vote = agree(own_vote()))
    laps.run(true);
  std::vector<Result<std::vector<double>>> results;
  for (std::size_t i = 0; i < works.size(); ++i) {
    const std::string& failure = laps.failure(i);
    if (agree(failure.empty() ? Vote::done : Vote::failed) == Vote::failed)
      results.emplace_back(fail(failure.empty() ? "another rank could not time it" : failure));
    else
      results.emplace_back(laps.times(i));
  }
  return results;
}

Result<std::vector<double>> time_work(const TimedWork& work, const TimingOptions& options) {
  return time_laps({&work, 1}, options).front();
}

}  // namespace sibyl

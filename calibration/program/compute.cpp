#include "calibration/program/compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "base/progress.h"
#include "base/statistics.h"
#include "calibration/program/interruption.h"
#include "calibration/turns.h"

namespace sibyl {
namespace {

// Over the ranks: the median of their medians. Not the slowest: which rank is slow changes from kernel to kernel, and a
// step, the sum of hundreds of kernels, averages that out; taking each kernel's slowest would add up to a step that no
// rank takes. The spread holds both the scatter of one rank's timings and that between ranks, from which the oracle
// takes the expected slowest rank of a step.
KernelSample combine(const Ranks& ranks, KernelSample sample) {
  const std::vector<double> medians = ranks.gather(sample.time.value());
  const double time = median(medians);
  const double within = median(ranks.gather(sample.spread)), between = relative_spread(medians, time);
  sample.time = Seconds{time};
  sample.spread = std::sqrt(within * within + between * between);
  const std::vector<double> runs = ranks.gather(sample.runs);
  sample.runs = static_cast<int>(*std::min_element(runs.begin(), runs.end()));
  return sample;
}

Bytes touched(const KernelKey& key, const Device& device) {
  const Work work = work_of(key, device.backend);
  return work.read + work.written;
}

// Less of the memory's rate than a quarter, and ranks do not wait for each other's memory.
bool uses_memory(const Device& device, const KernelSample& sample) {
  return touched(sample.key, device) > 0.25 * device.memory_bandwidth * sample.time;
}

// Of rank 0, which has the device. What all ranks took together is in `samples`, and what this one did then in `own`.
void time_alone(const Ranks& ranks, const Device& device, std::vector<KernelSample>& samples,
                const std::vector<Seconds>& own, const TimeKernels& time) {
  if (ranks.first()) {
    std::vector<KernelKey> keys;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (uses_memory(device, samples[i])) keys.push_back(samples[i].key), which.push_back(i);
    const auto timed = keys.empty() ? std::vector<Result<KernelSample>>{} : time(keys);
    for (std::size_t k = 0; k < which.size(); ++k)
      if (KernelSample& sample = samples[which[k]]; timed[k])
        sample.alone = sample.time * std::min(1.0, timed[k]->time / own[which[k]]);
  }
  ranks.rest();
}

// Where it fits in.
Seconds time_cached(const Ranks& ranks, const Device& device, const KernelSample& sample, const TimeKernels& time) {
  const bool fits = touched(sample.key, device) <= device.cache;
  if (ranks.greatest(ranks.first() && fits ? 1 : 0) == 0) return {};
  const auto timed = time({&sample.key, 1});
  return timed.front() ? std::min(sample.time, combine(ranks, *timed.front()).time) : Seconds{};
}

std::string joined(const std::vector<KernelKey>& keys) {
  std::string text;
  for (const KernelKey& key : keys) text += to_string(key) + "\n";
  return text;
}

Result<std::vector<KernelKey>> keys_of(const std::string& text) {
  std::vector<KernelKey> keys;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    SIBYL_TRY(KernelKey key, parse_kernel_key(std::string_view(text).substr(at, end - at)));
    keys.push_back(std::move(key));
    at = end + 1;
  }
  return keys;
}

// The keys to be timed, as rank 0 says.
Result<std::vector<KernelKey>> missing(const Ranks& ranks, const Session& session, const std::vector<KernelKey>& keys,
                                       const Repetition& repeated) {
  std::vector<KernelKey> wanted;
  if (ranks.first())
    std::copy_if(keys.begin(), keys.end(), std::back_inserter(wanted),
                 [&](const KernelKey& k) { return repeated.another(session.times_of(k)) && !session.is_left_out(k); });
  return keys_of(ranks.from_first(joined(wanted)));
}

// Those that would be timed, had the device not failed at them; known to rank 0.
std::vector<Error> left_out(const Session& session, const std::vector<KernelKey>& keys, const Repetition& repeated) {
  const std::string why = fmt::format("the device failed at it in an earlier run (remove {} to try it again)",
                                      session.left_out_path().string());
  std::vector<Error> errors;
  for (const KernelKey& key : keys)
    if (session.is_left_out(key) && repeated.another(session.times_of(key)))
      errors.push_back({ErrorCode::bad_input, why, to_string(key), {}});
  return errors;
}

// What all ranks do next; the greatest holds.
enum class Next { go_on, out_of_time, stop };

Next agree_on_next(const Ranks& ranks, Seconds elapsed, std::optional<Seconds> limit) {
  const Next own = told_to_end() ? Next::stop : limit && elapsed >= *limit ? Next::out_of_time : Next::go_on;
  return static_cast<Next>(ranks.greatest(static_cast<int>(own)));
}

struct InTurn {
  std::vector<KernelSample> samples;
  std::vector<Error> refused;
  std::optional<KernelKey> first_refused;
};

InTurn time_in_turn(const Ranks& ranks, const Device& device, std::span<const KernelKey> keys,
                    const KernelTimers& timers) {
  InTurn turn;
  std::vector<Seconds> own;
  const std::vector<Result<KernelSample>> all = timers.together(keys);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Result<KernelSample>& timed = all[i];
    if (!timed) {
      turn.refused.push_back(timed.error());
      if (!turn.first_refused) turn.first_refused = keys[i];
      continue;
    }
    turn.samples.push_back(combine(ranks, *timed));
    own.push_back(timed->time);
  }
  if (timers.alone) time_alone(ranks, device, turn.samples, own, timers.alone);
  if (timers.cached)
    for (KernelSample& sample : turn.samples) sample.cached = time_cached(ranks, device, sample, timers.cached);
  return turn;
}

// A device that has failed refuses every kernel after the one that it failed at. The next run's is the same again, so
// it is remembered.
Result<void> check_device(const Ranks& ranks, Session& session, const InTurn& turn, const KernelTimers& timers) {
  if (!turn.first_refused || !timers.usable) return {};
  const Result<void> usable = ranks.agree(timers.usable());
  if (usable) return {};
  SIBYL_CHECK(ranks.agree(ranks.first() ? session.leave_out(*turn.first_refused) : Result<void>{}));
  return fail(
      fmt::format("the device failed at this kernel, and no other can be timed after it ({})", usable.error().message),
      to_string(*turn.first_refused), "the same command goes on without it");
}

}  // namespace

Result<void> measure_kernels(const Ranks& ranks, Session& session, const std::vector<KernelKey>& keys,
                             const KernelTimers& timers, const Repetition& repeated, std::optional<Seconds> limit) {
  SIBYL_TRY(const std::vector<KernelKey> todo, missing(ranks, session, keys, repeated));
  std::vector<Error> refused = ranks.first() ? left_out(session, keys, repeated) : std::vector<Error>{};
  const std::size_t wanted = todo.size() + refused.size();
  if (ranks.first() && wanted < keys.size())
    fmt::print(stderr, "{} of {} kernels are in {} already\n", keys.size() - wanted, keys.size(),
               session.path().string());
  std::optional<Progress> progress;
  if (ranks.first() && !todo.empty()) progress.emplace("timing kernels", todo.size());

  const auto start = std::chrono::steady_clock::now();
  std::size_t done = 0;
  while (done < todo.size()) {
    const Seconds elapsed{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
    const Next next = agree_on_next(ranks, elapsed, limit);
    if (next == Next::stop) return fail(ErrorCode::interrupted, "interrupted; a further run goes on from here");
    if (next == Next::out_of_time) break;
    if (progress) progress->report(done, name_of(todo[done].signature.attributes));

    const Device& device = session.calibration().device;
    const std::size_t count = in_turn(std::span(todo).subspan(done), timers.lap, timers.most_memory);
    InTurn timed = time_in_turn(ranks, device, std::span(todo).subspan(done, count), timers);
    std::ranges::move(timed.refused, std::back_inserter(refused));
    for (const KernelSample& sample : timed.samples) {
      const Result<void> added = ranks.first() ? session.add(sample) : Result<void>{};
      SIBYL_CHECK(ranks.agree(added));
    }
    SIBYL_CHECK(check_device(ranks, session, timed, timers));
    done += count;
  }
  if (progress) progress->report(done);
  progress.reset();
  if (ranks.first() && done < todo.size())
    fmt::print(stderr, "--budget has passed with {} of {} kernels timed; a further run goes on from there\n", done,
               todo.size());
  Result<void> outcome;
  if (!refused.empty())
    outcome = fail(fmt::format("{} of {} kernels cannot be timed, the first because: {}", refused.size(), wanted,
                               refused.front().message),
                   refused.front().where, "the others are measured");
  return ranks.agree(outcome);
}

}  // namespace sibyl

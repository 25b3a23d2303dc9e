#include "calibration/program/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "base/statistics.h"
#include "profiler/torch/read_sweep.h"
#include "profiler/torch/reuse_sweep.h"
#include "profiler/torch/timing.h"

namespace sibyl {
namespace {

Result<void> must_match(const Calibration& stored, Bytes asked, const std::string& file) {
  const Bytes own = stored.device.cache;
  if (stored.kernels.empty() || asked.value() == 0 || own.value() == 0 || own == asked) return {};
  return fail(
      fmt::format("its kernels were timed outside of a cache of {}, --cache says {}", to_string(own), to_string(asked)),
      file, fmt::format("name another file with -o, or say --cache {:.0f} or nothing", own.value()));
}

// Of each working set the ranks' median, so that all of them find the same cache.
std::vector<ReadSample> sweep_of_ranks(const Ranks& ranks, Bytes reported, int threads) {
  std::vector<ReadSample> sweep = read_sweep(working_sets(reported), threads, [&] { ranks.barrier(); });
  for (ReadSample& sample : sweep) sample.time = Seconds{median(ranks.gather(sample.time.value()))};
  return sweep;
}

std::vector<ReuseSample> reuses_of_ranks(const Ranks& ranks, Bytes largest, int threads) {
  std::vector<ReuseSample> samples = reuse_sweep(largest, threads, [&] { ranks.barrier(); });
  for (ReuseSample& sample : samples) sample.rate = BytesPerSecond{median(ranks.gather(sample.rate.value()))};
  return samples;
}

std::vector<LastingSample> lasting_of_ranks(const Ranks& ranks, Bytes largest, int threads) {
  std::vector<LastingSample> samples = lasting_sweep(largest, threads, [&] { ranks.barrier(); });
  for (LastingSample& sample : samples) sample.rate = BytesPerSecond{median(ranks.gather(sample.rate.value()))};
  return samples;
}

void say(Bytes found, Bytes reported, const std::vector<ReadSample>& sweep) {
  const auto rate = [](const ReadSample& s) { return to_string(s.bytes / s.time); };
  const auto own = std::find_if(sweep.begin(), sweep.end(), [&](const ReadSample& s) { return s.bytes >= found; });
  fmt::print(stderr, "cache: {} of the {} that the machine reports: {} are read at {}, {} at {}\n", to_string(found),
             to_string(reported), to_string(own->bytes), rate(*own), to_string(sweep.back().bytes), rate(sweep.back()));
}

}  // namespace

Result<Bytes> settle_cache(const Ranks& ranks, Session& session, Bytes asked, int threads) {
  Calibration& calibration = session.calibration();
  SIBYL_CHECK(ranks.agree(must_match(calibration, asked, session.path().string())));
  const Bytes kept{ranks.gather(calibration.device.cache.value()).front()};
  Bytes cache = asked.value() > 0 ? asked : kept;
  if (cache.value() == 0) {
    const Bytes reported{ranks.gather(last_level_cache().value()).front()};
    const std::vector<ReadSample> sweep = sweep_of_ranks(ranks, reported, threads);
    cache = effective_cache(sweep, reported);
    if (ranks.first()) calibration.reads = sweep, say(cache, reported, sweep);
    std::vector<ReuseSample> reuses = reuses_of_ranks(ranks, out_of_cache(cache, reported), threads);
    std::vector<LastingSample> lasting = lasting_of_ranks(ranks, out_of_cache(cache, reported), threads);
    if (ranks.first()) calibration.reuses = std::move(reuses), calibration.lasting = std::move(lasting);
  }
  // The memory's bandwidth is of arrays that this cache does not hold, so it is measured with it.
  if (ranks.first() && calibration.device.cache != cache) {
    calibration.device.cache = cache;
    calibration.device.memory_bandwidth = {};
  }
  return cache;
}

}  // namespace sibyl

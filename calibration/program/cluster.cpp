#include "calibration/program/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/progress.h"
#include "calibration/program/fingerprint.h"
#include "calibration/program/interruption.h"
#include "comm/communicator.h"
#include "comm/waiting.h"
#include "netmodel/probe/meetings.h"
#include "netmodel/probe/probe.h"
#include "profiler/torch/limits.h"

namespace sibyl {
namespace {

bool same(const PointToPointSample& a, const PointToPointSample& b) {
  return a.same_node == b.same_node && a.both_ways == b.both_ways && a.pairs == b.pairs && a.bytes == b.bytes;
}
bool same(const PairSample& a, const PairSample& b) { return a.from == b.from && a.to == b.to && a.bytes == b.bytes; }
bool same(const CollectiveSample& a, const CollectiveSample& b) {
  return a.collective == b.collective && a.algorithm == b.algorithm && a.placement == b.placement && a.bytes == b.bytes;
}

template <class Sample>
int samples_of(const std::vector<Sample>& samples, const Sample& sample) {
  return static_cast<int>(std::ranges::count_if(samples, [&](const Sample& s) { return same(s, sample); }));
}

bool alone(const Ranks& ranks, std::string_view what) {
  if (ranks.size() == 1) fmt::print(stderr, "{} needs two ranks or more: left out\n", what);
  return ranks.size() == 1;
}

// Of ranks that compute on their processors; as many series as samples of each message.
void measure_meetings(Communicator& world, const Ranks& ranks, Calibration& calibration, int samples) {
  std::vector<MeetingSample>& series = calibration.meetings;
  const bool elsewhere = calibration.device.backend != Backend::cpu;
  const bool enough = elsewhere || series.size() >= static_cast<std::size_t>(samples);
  if (ranks.greatest(ranks.first() && enough ? 1 : 0) == 1) return;
  std::vector<float> zeros(256 * 1024 / sizeof(float));
  // Some milliseconds, as between two exchanges of a step.
  constexpr std::int64_t extent = 10, rows = 16;
  const MeetingMeasurement m =
      probe_meetings(world, typical_work(extent, rows), [&] { world.all_reduce(zeros, Algorithm::automatic); });
  MeetingSample sample{ranks.size(), m.longer, {}};
  for (const auto& [computing, late] : m.windows) sample.windows.push_back({computing, late});
  if (ranks.first()) series.push_back(std::move(sample));
}

// The file has so many samples of each exchange behind it. Of the time that is left then, a share; and how much of the
// rest may go, too, into what long exchanges are foretold by, which is worth more than to know others better.
struct Moment {
  int samples = 1;
  double share = 1.0, more = 0.0;
};

std::vector<Moment> moments_of(const NetworkRequest& request) {
  if (request.samples) return {{*request.samples}};
  return {{1, 0.5, 1.0}, {2, 0.5, 0.0}, {3}};
}

}  // namespace

Result<void> measure_network(const Ranks& ranks, Session& session, const NetworkRequest& request) {
  if (alone(ranks, "network")) return {};
  Calibration& calibration = session.calibration();
  const std::vector<Moment> moments = moments_of(request);
  int samples = moments.front().samples;
  Result<void> saved;
  const auto keep = [&](auto& all, const auto& sample) {
    all.push_back(sample);
    if (const Result<void> outcome = session.write(); !outcome && saved) saved = outcome;
  };
  NetworkProbeSink sink;
  sink.point_to_point = [&](const PointToPointSample& sample) { keep(calibration.point_to_point, sample); };
  sink.collective = [&](const CollectiveSample& sample) { keep(calibration.collectives, sample); };
  sink.pair = [&](const PairSample& sample) { keep(calibration.pairs, sample); };
  sink.have_pair = [&](const PairSample& s) { return samples_of(calibration.pairs, s) >= samples; };
  sink.have_point_to_point = [&](const PointToPointSample& s) {
    return samples_of(calibration.point_to_point, s) >= samples;
  };
  sink.have_collective = [&](const CollectiveSample& s) { return samples_of(calibration.collectives, s) >= samples; };
  std::optional<Progress> progress;
  sink.progress = [&](int done, int total, std::string_view what) {
    if (!ranks.first()) return;
    if (!progress)
      progress.emplace(samples == moments.front().samples ? "measuring the network" : "measuring the network once more",
                       static_cast<std::size_t>(total));
    progress->report(static_cast<std::size_t>(done), what);
  };
  sink.remark = [](std::string_view remark) { fmt::print(stderr, "network: {}\n", remark); };
  NetworkProbeOptions options;
  options.place = place_of_this_process();
  options.between = typical_work();
  options.stop = told_to_end;
  Communicator world = Communicator::world();
  const bool ranks_sleep = request.ranks_sleep.value_or(ranks.greatest(comm::may_look() ? 0 : 1) == 1);
  if (ranks_sleep) {
    static constexpr Seconds like_some_kernels{5e-3};
    options.rest = [](Seconds time) { std::this_thread::sleep_for(std::chrono::duration<double>(time.value())); };
    options.between = [rest = options.rest] { rest(like_some_kernels); };
  }
  using Clock = std::chrono::steady_clock;
  const auto goes_on = [&] { return ranks.greatest(told_to_end() ? 1 : 0) == 0; };
  Seconds left = request.budget;
  for (const Moment& moment : moments) {
    samples = moment.samples;
    options.budget = left * moment.share;
    options.more = (left - options.budget) * moment.more;
    const Clock::time_point begin = Clock::now();
    SIBYL_CHECK(ranks.agree(probe_network(world, options, sink)));
    const std::chrono::duration<double> taken = Clock::now() - begin;
    left -= Seconds{std::ranges::max(ranks.gather(taken.count()))};  // the same on all ranks
    constexpr double too_little = 1.0 / 16;                          // of the whole, to begin once more
    if (!goes_on() || left < request.budget * too_little) break;
    progress.reset();
    sink.remark = {};  // what does not fit once more is there already, or was told of
  }
  if (!ranks_sleep && goes_on()) measure_meetings(world, ranks, calibration, moments.front().samples);
  return ranks.agree(saved);
}

Result<void> measure_overlap(const Ranks& ranks, Session& session) {
  if (alone(ranks, "overlap")) return {};
  const auto& samples = session.calibration().overlap;
  const bool have =
      std::ranges::any_of(samples, [](const OverlapSample& s) { return s.algorithm == Algorithm::automatic; });
  if (ranks.greatest(have ? 1 : 0) == 1) return {};
  Communicator world = Communicator::world();
  std::vector<int> everyone(static_cast<std::size_t>(ranks.size()));
  for (std::size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
  Communicator beside = world.subgroup(everyone);

  const std::function<void()> work = typical_work();
  std::vector<OverlapSample> measured;
  for (const std::size_t mebibytes : {25, 1, 128}) {  // DDP's buckets first; short ones; the gradient of a large layer
    std::vector<float> zeros(mebibytes * 1024 * 1024 / sizeof(float));  // sums of other sums would overflow
    const auto communicate = [&] { beside.all_reduce(zeros, Algorithm::automatic); };
    const OverlapMeasurement m = probe_overlap(world, work, communicate);
    measured.push_back(
        {m.compute_slowdown, m.communication_slowdown, m.spread, Algorithm::automatic, m.communication_alone});
    // All of them or none: who finds one in the file takes them for measured.
    if (ranks.greatest(told_to_end() ? 1 : 0) == 1)
      return fail(ErrorCode::interrupted, "interrupted; a further run goes on from here");
    // Where the wire sets the pace, longer messages are slowed alike, and would take minutes.
    constexpr Seconds slow_wire{0.1};
    if (ranks.greatest(m.communication_alone > slow_wire ? 1 : 0) == 1) break;
  }
  if (ranks.first()) std::ranges::copy(measured, std::back_inserter(session.calibration().overlap));
  return session.save();
}

}  // namespace sibyl

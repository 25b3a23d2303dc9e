// sibyl-calibrate-cudnn: measures the kernels of an NVIDIA GPU without PyTorch or MPI. `sibyl calibrate compute
// --backend cudnn` starts it.

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <fstream>
#include <thread>

#include "base/files.h"
#include "calibration/program/compute.h"
#include "calibration/program/cudnn_records.h"
#include "calibration/program/cudnn_request.h"
#include "calibration/program/host_link.h"
#include "calibration/program/interruption.h"
#include "calibration/program/session.h"
#include "calibration/summary.h"
#include "calibration/unmeasured.h"

namespace sibyl {
namespace {

// Facts that tell this machine from others, without hwloc: a GPU's samples depend little on its host.
std::map<std::string, std::string> machine_of(const cudnn::Gpu& gpu, bool best) {
  std::map<std::string, std::string> facts = gpu.machine();
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) {
      facts["cpu"] = line.substr(line.find(':') + 2);
      break;
    }
  facts["hardware_threads"] = std::to_string(std::thread::hardware_concurrency());
  facts["engines"] = best ? "best" : "heuristic";
  return facts;
}

class Calibrator {
 public:
  Calibrator(const Ranks& ranks, const CudnnRequest& request, const cudnn::Gpu& gpu, Session& session)
      : ranks_(ranks), request_(request), gpu_(gpu), session_(session) {
    options_.budget = request.common.kernel_budget;
    if (request.common.limit) end_ = std::chrono::steady_clock::now() + to_clock(*request.common.limit);
  }

  // Peak, bandwidth, context, launches and the link to the host: once a file.
  Result<void> facts() {
    Calibration& calibration = session_.calibration();
    if (calibration.device.memory_bandwidth.value() > 0) return {};
    SIBYL_TRY(calibration.device, gpu_.measure(options_));
    assume_dispatch(calibration.device);
    add_shipped(calibration);
    SIBYL_TRY(const Seconds launch, gpu_.launch());
    SIBYL_CHECK(write_launches(session_.path(), launch));
    SIBYL_TRY(const auto transfers, gpu_.transfers(options_));
    calibration.device.host_link = host_link_of(transfers);
    SIBYL_CHECK(write_transfers(session_.path(), transfers));
    return session_.save();
  }

  Result<void> kernels(const std::vector<KernelKey>& keys) {
    const auto time = [&](const KernelKey& key) -> Result<KernelSample> {
      SIBYL_TRY(cudnn::Timing timing, gpu_.time(key, options_));
      SIBYL_CHECK(append_condition(session_.path(), timing));
      if (request_.settings.best) timing.sample.time = timing.best;
      return timing.sample;
    };
    const auto each = [&](std::span<const KernelKey> of) {
      std::vector<Result<KernelSample>> samples;
      for (const KernelKey& key : of) samples.push_back(time(key));
      return samples;
    };
    const KernelTimers timers{.together = each, .usable = [this] { return gpu_.usable(); }};
    const Result<void> measured =
        measure_kernels(ranks_, session_, keys, timers, request_.common.repeated, time_left());
    SIBYL_CHECK(session_.save());
    return measured;
  }

  // The sweep, cut finer where interpolation is not good enough, and how good it is in the end.
  Result<void> sweep() {
    GpuSweepOptions options;
    options.density = request_.common.sweep_size == SweepSize::full ? GridDensity::full : GridDensity::quick;
    options.dtypes = request_.dtypes.empty() ? gpu_.dtypes() : request_.dtypes;
    options.optimizers = request_.common.wanted.optimizers;
    const Bytes most = session_.calibration().device.memory * 0.2;
    const auto acceptable = [most](const KernelKey& key) { return fits(key, most); };
    Sweep plan = plan_sweep(gpu_grids(options), acceptable);
    const Calibration& calibration = session_.calibration();
    for (int round = 0;; ++round) {
      const Result<void> measured = kernels(plan.keys());
      if (!measured && (measured.error().code == ErrorCode::interrupted || !gpu_.usable())) return measured;
      // What libraries refuse is not a failure of a sweep over all that might be asked; it is said.
      if (!measured) fmt::print(stderr, "{}\n", to_string(measured.error()));
      SIBYL_CHECK(report(check_error(plan, calibration.device, calibration.kernels)));
      const bool time_over = end_ && std::chrono::steady_clock::now() >= *end_;
      if (round == request_.rounds || time_over ||
          refine(plan, calibration.device, calibration.kernels, request_.tolerance, acceptable) == 0)
        return {};
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::duration to_clock(Seconds t) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(t.value()));
  }
  [[nodiscard]] std::optional<Seconds> time_left() const {
    if (!end_) return std::nullopt;
    return Seconds{std::max(0.0, std::chrono::duration<double>(*end_ - Clock::now()).count())};
  }
  Result<void> report(const std::vector<SweepError>& errors) const {
    fmt::print(stderr, "interpolated between the sweep's points, against timed:\n{}", sweep_errors_text(errors));
    return write_sweep_errors(session_.path(), errors);
  }

  const Ranks& ranks_;
  const CudnnRequest& request_;
  const cudnn::Gpu& gpu_;
  Session& session_;
  TimingOptions options_;
  std::optional<Clock::time_point> end_;
};

Result<void> run(const Ranks& ranks, const std::vector<std::string>& words) {
  SIBYL_TRY(const CudnnRequest request, read_cudnn_request(words));
  if (request.common.help) return print(*request.common.help);
  std::vector<KernelKey> keys;  // bad input is told before a device is looked for
  const bool of_models = !request.common.wanted.models.empty();
  if (of_models) {
    SIBYL_TRY(keys, kernels_of_models(request.common.wanted));
  }
  SIBYL_TRY(const cudnn::Gpu gpu, cudnn::Gpu::open(request.settings));
  const Setup setup{machine_of(gpu, request.settings.best), gpu.libraries(), 1, Backend::cuda};
  const auto start = std::chrono::steady_clock::now();
  SIBYL_TRY(Session session, Session::open(ranks, request.common.output, setup));
  const SampleCounts before = count_samples(session.calibration());
  Calibrator calibrator(ranks, request, gpu, session);
  SIBYL_CHECK(calibrator.facts());
  if (!request.facts_only) {
    const Result<void> measured = of_models ? calibrator.kernels(keys) : calibrator.sweep();
    SIBYL_CHECK(session.save());
    SIBYL_CHECK(measured);
  }
  const Seconds elapsed{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  const std::string file = session.path().string();
  return print(request.common.json ? summary_json(file, before, session.calibration(), elapsed) : file + "\n");
}

}  // namespace
}  // namespace sibyl

int main(int argc, char** argv) {
  using namespace sibyl;
  const Ranks ranks(argc, argv);
  watch_for_interruption(true);
  Result<void> outcome;
  try {
    outcome = run(ranks, std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& exception) {
    fmt::print(stderr, "sibyl-calibrate-cudnn: {}\n", exception.what());
    return 3;
  }
  if (outcome) return 0;
  fmt::print(stderr, "{}\n", to_string(outcome.error()));
  return exit_code(outcome.error().code);
}

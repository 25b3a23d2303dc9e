// sibyl-calibrate: measures the machine it runs on. Alone, or as one process of an MPI job.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "aten/device.h"
#include "aten/runtime.h"
#include "calibration/program/cache.h"
#include "calibration/program/cluster.h"
#include "calibration/program/commands.h"
#include "calibration/program/compute.h"
#include "calibration/program/fingerprint.h"
#include "calibration/program/interruption.h"
#include "calibration/program/ranks.h"
#include "calibration/program/session.h"
#include "calibration/program/step_overhead.h"
#include "calibration/program/storage.h"
#include "calibration/program/torch_device.h"
#include "calibration/summary.h"
#include "comm/machine.h"
#include "netmodel/probe/room.h"
#include "profiler/cache.h"
#include "profiler/sweep/gpu_grids.h"
#include "profiler/torch/time_kernel.h"

namespace sibyl {
namespace {

std::vector<KernelKey> gpu_sweep(const Request& request) {
  GpuSweepOptions options;
  options.density = request.sweep_size == SweepSize::full ? GridDensity::full : GridDensity::quick;
  options.dtypes = {DType::f32, DType::tf32, DType::f16, DType::bf16};
  options.optimizers = request.wanted.optimizers;
  options.composed_norms = true;
  return plan_sweep(gpu_grids(options), [](const KernelKey& key) { return fits(key, Bytes{4e9}); }).keys();
}

Setup setup_of(const Request& request) {
  Setup setup{machine_fingerprint(), library_versions(), request.threads, Backend::cpu};
  setup.storage_alone = !(request.compute || request.network || request.overlap);
  if (!request.cuda) return setup;
  setup.backend = Backend::cuda;
  setup.machine.erase("pages");  // of the host's memory
  setup.machine["gpu"] = aten::device_limits().name;
  return setup;
}

// Which kernels to time: rank 0 reads the models, the others hear whether it could.
Result<std::vector<KernelKey>> choose_kernels(const Ranks& ranks, const Request& request) {
  std::vector<KernelKey> keys;
  const auto choose = [&]() -> Result<void> {
    if (!request.compute || !ranks.first()) return {};
    if (request.wanted.models.empty()) {
      keys = request.cuda ? gpu_sweep(request) : sweep(request.sweep_size, request.wanted.optimizers);
      return {};
    }
    SIBYL_TRY(keys, kernels_of_models(request.wanted));
    return {};
  };
  SIBYL_CHECK(ranks.agree(choose()));
  return keys;
}

// How many ranks share the first one's memory.
int ranks_on_machine(const Ranks& ranks) {
  const std::vector<double> machines = ranks.gather(machine_number());
  if (machines.front() == 0) return ranks.per_node();
  return static_cast<int>(std::ranges::count(machines, machines.front()));
}

// Whether the file is a GPU's: what this run finds out about processors is not its device's, then.
bool is_of_gpu(const Ranks& ranks, Session& session) {
  const bool own = ranks.first() && session.calibration().device.backend == Backend::cuda;
  return ranks.greatest(own ? 1 : 0) == 1;
}

Result<void> compute(const Ranks& ranks, Session& session, const Request& request, TimingOptions options,
                     const std::vector<KernelKey>& keys) {
  SIBYL_CHECK(measure_step_overhead(ranks, session, options));
  SIBYL_CHECK(session.save());
  const double start = now();
  options.in_a_hurry = [&request, start] {
    return told_to_end() || (request.limit && now() - start >= request.limit->value());
  };
  const auto timed_with = [](TimingOptions with) {
    return [with = std::move(with)](std::span<const KernelKey> turn) { return time_kernels(turn, with); };
  };
  TimingOptions cold = options;
  if (!request.cuda) {
    const Bytes reported{ranks.gather(last_level_cache().value()).front()};
    cold.lap = out_of_cache(options.cache, reported);
  }
  KernelTimers timers{.together = timed_with(cold), .lap = cold.lap, .most_memory = options.most_memory};
  if (const int sharing = ranks_on_machine(ranks); sharing > 1 && !request.cuda) {  // a GPU's memory is its own
    session.calibration().one_machine = sharing > ranks.per_node();
    TimingOptions alone = cold;
    alone.agree = {};
    timers.alone = timed_with(std::move(alone));
  }
  if (!request.cuda) timers.cached = timed_with(options);
  if (request.cuda) timers.usable = gpu_is_usable;
  const Result<void> measured = measure_kernels(ranks, session, keys, timers, request.repeated, request.limit);
  SIBYL_CHECK(session.save());
  return measured;
}

Result<void> storage(const Ranks& ranks, Session& session, const Request& request) {
  const auto measure = [&]() -> Result<void> {
    if (!ranks.first()) return {};
    SIBYL_TRY(session.calibration().io, measure_storage(request.io_folder, request.io_size));
    return {};
  };
  SIBYL_CHECK(ranks.agree(measure()));
  return session.save();
}

Result<void> run(const Ranks& ranks, const std::vector<std::string>& words) {
  SIBYL_TRY(const Request request, read_request(words, ranks.size()));
  if (request.help) {
    return ranks.first() ? print(*request.help) : Result<void>{};
  }
  SIBYL_TRY(const std::vector<KernelKey> keys, choose_kernels(ranks, request));  // bad input is told before measuring
  aten::prepare_process(request.threads);
  if (request.cuda) SIBYL_CHECK(ranks.agree(aten::use_cuda(request.gpu.value_or(ranks.on_node()))));
  const auto start = std::chrono::steady_clock::now();
  SIBYL_TRY(Session session, Session::open(ranks, request.output, setup_of(request)));
  const SampleCounts before = count_samples(session.calibration());
  const auto go_on = [&]() -> Result<void> {
    if (ranks.greatest(told_to_end() ? 1 : 0) == 0) return {};
    return fail(ErrorCode::interrupted, "interrupted; a further run goes on from here");
  };
  TimingOptions options;
  options.budget = request.kernel_budget;
  // A GPU tells its own.
  if (!is_of_gpu(ranks, session)) {
    SIBYL_TRY(options.cache, settle_cache(ranks, session, request.cache, request.threads));
    const Bytes room = probe::free_memory() / (2.0 * ranks_on_machine(ranks));
    options.most_memory = std::min(options.most_memory, Bytes{std::ranges::min(ranks.gather(room.value()))});
  }
  options = timed_together(options, ranks);
  SIBYL_CHECK(measure_device(ranks, session, options));  // no calibration is complete without
  SIBYL_CHECK(go_on());
  // Network first: it is short, and kernels may take long.
  if (request.network) SIBYL_CHECK(measure_network(ranks, session, request.of_network));
  SIBYL_CHECK(go_on());
  if (request.overlap) SIBYL_CHECK(measure_overlap(ranks, session));
  SIBYL_CHECK(go_on());
  if (request.io) SIBYL_CHECK(storage(ranks, session, request));
  SIBYL_CHECK(go_on());
  if (request.compute) SIBYL_CHECK(compute(ranks, session, request, options, keys));
  SIBYL_CHECK(session.save());
  const Seconds elapsed{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  const std::string file = session.path().string();
  if (ranks.first())
    SIBYL_CHECK(print(request.json ? summary_json(file, before, session.calibration(), elapsed) : file + "\n"));
  return go_on();
}

}  // namespace
}  // namespace sibyl

int main(int argc, char** argv) {
  using namespace sibyl;
  aten::ask_for_huge_pages(argv);
  const Ranks ranks(argc, argv);
  watch_for_interruption(ranks.first());
  Result<void> outcome;
  try {
    outcome = run(ranks, std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& exception) {
    // A bug, or memory that has run out, on this rank alone: the others wait for it, so the job must end here.
    fmt::print(stderr, "sibyl-calibrate: rank {}: {}\n", ranks.rank(), exception.what());
    ranks.abort(3);
  }
  if (outcome) return 0;
  if (ranks.first()) fmt::print(stderr, "{}\n", to_string(outcome.error()));
  return exit_code(outcome.error().code);
}

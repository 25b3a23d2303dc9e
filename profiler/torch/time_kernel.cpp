#include "profiler/torch/time_kernel.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "aten/device.h"
#include "base/statistics.h"
#include "profiler/torch/bench.h"
#include "profiler/torch/clock.h"
#include "profiler/torch/others.h"
#include "profiler/torch/update.h"

namespace sibyl {
namespace {

// No run is shorter than the clock resolves.
constexpr double shortest_kernel = 5e-8;

struct Memory {
  Bytes workspace, kept;
};

Bytes bytes(std::int64_t count) { return Bytes{static_cast<double>(std::max<std::int64_t>(0, count))}; }

struct Use {
  std::int64_t peak, left;  // beyond what lived before: at most, and in the end
};

template <class F>
Use memory_of(F&& run) {
  const std::int64_t before = aten::live_bytes();
  aten::reset_peak();
  run();
  return {aten::peak_bytes() - before, aten::live_bytes() - before};
}

// A kernel ready to be timed, and what its memory was in a first run, which also lets the libraries set themselves up.
struct Prepared {
  TimedWork work;
  Memory memory;
};

Prepared prepare_forward(const KernelKey& key, bool cold) {
  const auto bench = std::make_shared<Bench>(key, cold);
  bench->forward();
  bench->release();
  const Use use = memory_of([&] { bench->forward(); });
  const Memory memory{bytes(use.peak - use.left), bytes(use.left - bench->own_bytes(bench->results()))};
  // Results stay alive until the next run, as a step keeps them for later operations and for backward.
  return {{{},
           [bench] {
             bench->release();
             return seconds_of([&] { bench->make_incoming(); }, [&] { bench->forward(); });
           }},
          memory};
}

Prepared prepare_backward(const KernelKey& key, bool cold) {
  const auto bench = std::make_shared<Bench>(key, cold);
  bench->forward();
  const std::int64_t own = bench->own_bytes(bench->backward());
  bench->forward();
  bench->hand_over_gradients();
  Bench::Tensors gradients;
  const Use use = memory_of([&] { gradients = bench->backward(); });
  const Memory memory{bytes(use.peak - own), {}};
  // All forwards of a lap come first, so that what they saved is cold when backward reads it. Gradients are dropped
  // once read.
  return {{[bench] { bench->forward(); },
           [bench] {
             Bench::Tensors result;
             // The engine's start is the host's: no time of another device.
             const double start_up =
                 aten::on_cuda() ? 0.0 : seconds_of([] {}, [&] { result = bench->empty_backward(); });
             const double whole = seconds_of([&] { bench->make_incoming(); }, [&] { result = bench->backward(); });
             bench->release();
             return whole - start_up;
           }},
          memory};
}

Prepared prepare_update(const KernelKey& key) {
  const auto bench = std::make_shared<UpdateBench>(key);
  bench->run();
  const Memory memory{bytes(memory_of([&] { bench->run(); }).peak), {}};
  return {{{}, [bench] { return seconds_of([] {}, [&] { bench->run(); }); }}, memory};
}

Prepared prepare_copy(const KernelKey& key, bool cold) {
  const auto bench = std::make_shared<CopyBench>(key, cold);
  return {{{}, [bench] { return seconds_of([&] { bench->make_gradient(); }, [&] { bench->run(); }); }}, {}};
}

Prepared prepare(const KernelKey& key, bool cold) {
  const auto* norm = std::get_if<Normalization>(&key.signature.attributes);
  if (norm && norm->in_one_kernel)
    throw std::runtime_error("PyTorch composes RMS norms of several kernels; --backend cudnn times one");
  if (std::holds_alternative<OptimizerUpdate>(key.signature.attributes)) return prepare_update(key);
  if (key.pass == Pass::backward) return prepare_backward(key, cold);
  if (std::holds_alternative<Copy>(key.signature.attributes)) return prepare_copy(key, cold);
  Prepared forward = prepare_forward(key, cold);
  if (is_any<Packing, HaloPacking>(key.signature.attributes)) forward.memory = {};  // known (packing_elements())
  return forward;
}

// The host's page faults say nothing of a GPU's memory, and its cache is passed over by the clock (clock.h).
TimingOptions on_gpu(TimingOptions options) {
  options.lap = {};
  options.others = false;
  options.faults = [] { return std::int64_t{0}; };
  return options;
}

// libtorch's message without the C++ backtrace that follows its first line.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// One that cannot be prepared fails when its turn comes: also where only this rank has failed, the others must hear it.
Prepared prepare_or_fail(const KernelKey& key, const TimingOptions& options) {
  Prepared prepared;
  try {
    prepared = prepare(key, options.lap.value() > 0);
  } catch (const std::exception& exception) {
    prepared.work.measure = [failure = first_line(exception.what())]() -> double { throw std::runtime_error(failure); };
  }
  if (options.others) prepared.work.others = run_others;
  const Work work = work_of(key, Backend::cpu);
  prepared.work.holds = timed_bytes(key);
  prepared.work.touches = std::min(operand_bytes(key), work.read + work.written);
  return prepared;
}

KernelSample sample_of(const KernelKey& key, const std::vector<double>& times, const Memory& memory) {
  const double middle = std::max(median(times), shortest_kernel);
  return {key,
          Seconds{middle},
          relative_spread(times, middle),
          static_cast<int>(times.size()),
          memory.workspace,
          memory.kept,
          {},
          {}};
}

std::vector<Result<KernelSample>> time_turn(std::span<const KernelKey> keys, const TimingOptions& options) {
  std::vector<TimedWork> works;
  std::vector<Memory> memory;
  for (const KernelKey& key : keys) {
    Prepared prepared = prepare_or_fail(key, options);
    works.push_back(std::move(prepared.work));
    memory.push_back(prepared.memory);
  }
  const auto times = time_laps(works, options);
  std::vector<Result<KernelSample>> samples;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (times[i])
      samples.emplace_back(sample_of(keys[i], *times[i], memory[i]));
    else
      samples.emplace_back(fail(first_line(times[i].error().message), to_string(keys[i])));
  }
  return samples;
}

}  // namespace

std::vector<Result<KernelSample>> time_kernels(std::span<const KernelKey> keys, const TimingOptions& options) {
  aten::begin_counting();
  if (!aten::on_cuda()) return time_turn(keys, options);
  std::vector<Result<KernelSample>> samples;
  for (const KernelKey& key : keys) {
    aten::allow_tf32(key.signature.dtype == DType::tf32);
    samples.push_back(time_turn({&key, 1}, on_gpu(options)).front());
  }
  return samples;
}

Result<KernelSample> time_kernel(const KernelKey& key, const TimingOptions& options) {
  return time_kernels({&key, 1}, options).front();
}

}  // namespace sibyl

#include "profiler/torch/time_kernel.h"

#include <algorithm>
#include <exception>
#include <string>
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

Prepared prepare_forward(const KernelKey& key, int copies) {
  const auto bench = std::make_shared<Bench>(key, copies);
  bench->forward(0);
  bench->release(0);
  const Use use = memory_of([&] { bench->forward(0); });
  const Memory memory{bytes(use.peak - use.left), bytes(use.left - bench->own_bytes(bench->results(0), 0))};
  // Results stay alive until their copy's next turn, as a step keeps them for later operations and for backward.
  return {{{},
           [bench](int copy) {
             bench->release(copy);
             return seconds_of([&] { bench->warm_operand(copy); }, [&] { bench->forward(copy); });
           }},
          memory};
}

Prepared prepare_backward(const KernelKey& key, int copies) {
  const auto bench = std::make_shared<Bench>(key, copies);
  bench->forward(0);
  const std::int64_t own = bench->own_bytes(bench->backward(0), 0);
  bench->forward(0);
  bench->hand_over_gradients(0);
  Bench::Tensors gradients;
  const Use use = memory_of([&] { gradients = bench->backward(0); });
  const Memory memory{bytes(use.peak - own), {}};
  // All forwards first, so that what they saved is cold when backward reads it. Gradients are dropped once read.
  return {{[bench, copies] {
             for (int copy = 0; copy < copies; ++copy) bench->forward(copy);
           },
           [bench](int copy) {
             Bench::Tensors result;
             // The engine's start is the host's: no time of another device.
             const double start_up =
                 aten::on_cuda() ? 0.0 : seconds_of([] {}, [&] { result = bench->empty_backward(copy); });
             const double whole =
                 seconds_of([&] { bench->warm_gradient(copy); }, [&] { result = bench->backward(copy); });
             bench->release(copy);
             return whole - start_up;
           }},
          memory};
}

Prepared prepare_update(const KernelKey& key, int copies) {
  const auto bench = std::make_shared<UpdateBench>(key, copies);
  bench->run(0);
  const Memory memory{bytes(memory_of([&] { bench->run(0); }).peak), {}};
  return {{{}, [bench](int copy) { return seconds_of([] {}, [&] { bench->run(copy); }); }}, memory};
}

Prepared prepare_copy(const KernelKey& key, int copies) {
  const auto bench = std::make_shared<CopyBench>(key, copies);
  return {{{}, [bench](int copy) { return seconds_of([&] { bench->warm(copy); }, [&] { bench->run(copy); }); }}, {}};
}

bool is_update(const KernelKey& key) { return std::holds_alternative<OptimizerUpdate>(key.signature.attributes); }
bool is_copy(const KernelKey& key) {
  return std::holds_alternative<Copy>(key.signature.attributes) && key.pass == Pass::forward;
}

Prepared prepare(const KernelKey& key, int copies) {
  if (is_update(key)) return prepare_update(key, copies);
  if (is_copy(key)) return prepare_copy(key, copies);
  return key.pass == Pass::forward ? prepare_forward(key, copies) : prepare_backward(key, copies);
}

// The host's page faults say nothing of a GPU's memory.
TimingOptions on_gpu(TimingOptions options) {
  options.faults = [] { return std::int64_t{0}; };
  return options;
}

// libtorch's message without the C++ backtrace that follows its first line.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Result<KernelTiming> time_kernel(const KernelKey& key, const TimingOptions& given) {
  aten::begin_counting();
  const TimingOptions options = aten::on_cuda() ? on_gpu(given) : given;
  const Bytes one_copy = is_update(key) ? bytes_touched_by_update(key) : bytes_touched(key);
  // A GPU's cache is passed over before each run, whatever the number of copies: one is enough.
  const Rotation rotation = aten::on_cuda() ? Rotation{1, Bytes{0}, one_copy} : plan_rotation(one_copy, options);
  if (aten::on_cuda()) aten::allow_tf32(key.signature.dtype == DType::tf32);
  Prepared prepared;
  std::string failure;
  try {
    prepared = prepare(key, rotation.copies);
  } catch (const std::exception& exception) {
    failure = first_line(exception.what());
  }
  // Also where this rank has failed, the others must hear it at the barrier they wait at.
  if (!failure.empty()) prepared.work.measure = [&](int) -> double { throw std::runtime_error(failure); };
  if (options.others && !aten::on_cuda()) prepared.work.others = run_others;
  auto times = time_laps(prepared.work, rotation, options);
  if (!times) return fail(first_line(times.error().message), to_string(key));

  KernelTiming timing{
      {key, {}, 0.0, static_cast<int>(times->size()), prepared.memory.workspace, prepared.memory.kept, {}, {}},
      rotation};
  const double middle = std::max(median(*times), shortest_kernel);
  timing.sample.time = Seconds{middle};
  timing.sample.spread = relative_spread(*times, middle);
  return timing;
}

}  // namespace sibyl

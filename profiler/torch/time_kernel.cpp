#include "profiler/torch/time_kernel.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <variant>

#include "aten/memory.h"
#include "base/statistics.h"
#include "profiler/torch/bench.h"
#include "profiler/torch/update.h"

namespace sibyl {
namespace {

using aten::MemoryMeter;

// No run is shorter than the clock resolves.
constexpr double shortest = 5e-8;

template <class F>
double seconds_of(F&& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Memory {
  Bytes workspace, kept;
};

Bytes bytes(std::int64_t count) { return Bytes{static_cast<double>(std::max<std::int64_t>(0, count))}; }

struct Use {
  std::int64_t peak, left;  // beyond what lived before: at most, and in the end
};

template <class F>
Use memory_of(F&& run) {
  const std::int64_t before = MemoryMeter::live();
  MemoryMeter::reset_peak();
  run();
  return {MemoryMeter::peak() - before, MemoryMeter::live() - before};
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
             bench->warm_operand(copy);
             return seconds_of([&] { bench->forward(copy); });
           }},
          memory};
}

Prepared prepare_backward(const KernelKey& key, int copies) {
  const auto bench = std::make_shared<Bench>(key, copies);
  bench->forward(0);
  bench->backward(0);
  bench->forward(0);
  Bench::Tensors gradients;
  const Use use = memory_of([&] { gradients = bench->backward(0); });
  const Memory memory{bytes(use.peak - bench->own_bytes(gradients, 0)), {}};
  // All forwards first, so that what they saved is cold when backward reads it. Gradients are dropped once read.
  return {{[bench, copies] {
             for (int copy = 0; copy < copies; ++copy) bench->forward(copy);
           },
           [bench](int copy) {
             Bench::Tensors result;
             const double start_up = seconds_of([&] { result = bench->empty_backward(copy); });
             bench->warm_gradient(copy);
             const double whole = seconds_of([&] { result = bench->backward(copy); });
             bench->release(copy);
             return whole - start_up;
           }},
          memory};
}

Prepared prepare_update(const KernelKey& key, int copies) {
  const auto bench = std::make_shared<UpdateBench>(key, copies);
  bench->run(0);
  const Memory memory{bytes(memory_of([&] { bench->run(0); }).peak), {}};
  return {{{}, [bench](int copy) { return seconds_of([&] { bench->run(copy); }); }}, memory};
}

Prepared prepare_copy(const KernelKey& key, int copies) {
  const auto bench = std::make_shared<CopyBench>(key, copies);
  return {{{},
           [bench](int copy) {
             bench->warm(copy);
             return seconds_of([&] { bench->run(copy); });
           }},
          {}};
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

// libtorch's message without the C++ backtrace that follows its first line.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Result<KernelTiming> time_kernel(const KernelKey& key, const TimingOptions& options) {
  MemoryMeter::install();
  const Rotation rotation = plan_rotation(is_update(key) ? bytes_touched_by_update(key) : bytes_touched(key), options);
  Prepared prepared;
  std::string failure;
  try {
    prepared = prepare(key, rotation.copies);
  } catch (const std::exception& exception) {
    failure = first_line(exception.what());
  }
  // Also where this rank has failed, the others must hear it at the barrier they wait at.
  if (!failure.empty()) prepared.work.measure = [&](int) -> double { throw std::runtime_error(failure); };
  auto times = time_laps(prepared.work, rotation, options);
  if (!times) return fail(first_line(times.error().message), to_string(key));

  KernelTiming timing{
      {key, {}, 0.0, static_cast<int>(times->size()), prepared.memory.workspace, prepared.memory.kept, {}}, rotation};
  const double middle = std::max(median(*times), shortest);
  timing.sample.time = Seconds{middle};
  timing.sample.spread = relative_spread(*times, middle);
  return timing;
}

}  // namespace sibyl

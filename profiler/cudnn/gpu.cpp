#include "profiler/cudnn/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "base/statistics.h"
#include "models/training/training.h"
#include "profiler/cudnn/bench.h"
#include "profiler/cudnn/facts.h"
#include "profiler/cudnn/nvml.h"

namespace sibyl::cudnn {
namespace {

std::string pci_address(int device) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device), "the device's address");
  return text.data();
}

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "memory");
  return free;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The middle of a few runs of one choice; nothing where it fails, as an engine may that said it would not.
std::optional<double> quick_time(Bench& bench, int copies, std::size_t step, std::size_t choice) {
  constexpr int runs = 7;
  try {
    std::vector<double> times;
    bench.run_choice(0, step, choice);
    for (int i = 0; i < runs; ++i) times.push_back(bench.run_choice(i % copies, step, choice));
    return median(times);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// What the fastest choice of each step saves against the first, and what it is called.
struct Gain {
  double seconds = 0;
  std::string name;
};
Gain gain_of_best(Bench& bench, int copies) {
  Gain gain;
  const std::vector<Step>& steps = bench.program().steps;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].choices.size() < 2) continue;
    double first = 0, best = std::numeric_limits<double>::infinity();
    std::string name;
    for (std::size_t c = 0; c < steps[s].choices.size(); ++c) {
      const auto time = quick_time(bench, copies, s, c);
      if (c == 0) first = time.value_or(0.0);
      if (time && *time < best) best = *time, name = steps[s].choices[c].name;
    }
    gain.seconds += std::max(0.0, first - best);
    gain.name += (gain.name.empty() ? "" : ", ") + name;
  }
  return gain;
}

// What autograd keeps of this operation that is neither operand nor result: the framework's rule, as no framework runs
// here.
Bytes kept_by_rule(const KernelKey& key) {
  double bytes = 0;
  for (const Saved& saved :
       training_rule(key.signature, std::numeric_limits<std::uint32_t>::max(), Backend::cuda).saved)
    if (saved.what == Saved::What::extra) bytes += saved.bytes.value();
  return Bytes{bytes};
}

}  // namespace

struct Gpu::State {
  Settings settings;
  std::string pci;
  Nvml nvml;
  std::optional<Bytes> before;  // in use before this process opened the device
  Libraries libraries;

  explicit State(const Settings& s)
      : settings(s), pci(pci_address(s.device)), nvml(pci), before(nvml.memory_in_use()), libraries(s.device) {}

  TimingOptions of_device(TimingOptions options) const {
    options.cache = Bytes{static_cast<double>(std::max(libraries.properties().l2CacheSize, 1 << 20))};
    options.most_memory = Bytes{0.4 * static_cast<double>(free_memory())};
    options.faults = [] { return std::int64_t{0}; };  // the host's memory is not what kernels work in
    return options;
  }
};

Gpu::Gpu(std::unique_ptr<State> state) : state_(std::move(state)) {}
Gpu::~Gpu() = default;
Gpu::Gpu(Gpu&&) noexcept = default;
Gpu& Gpu::operator=(Gpu&&) noexcept = default;

Result<Gpu> Gpu::open(const Settings& settings) {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess || count == 0) {
    cudaGetLastError();
    return fail(fmt::format("there is no CUDA device here: {}",
                            status == cudaSuccess ? "CUDA finds none" : cudaGetErrorString(status)),
                {}, "calibrating a GPU needs one, and its driver; predicting does not");
  }
  if (settings.device < 0 || settings.device >= count)
    return fail(fmt::format("there is no CUDA device {}: this machine has {}", settings.device, count), "--gpu");
  try {
    return Gpu(std::make_unique<State>(settings));
  } catch (const std::exception& exception) {
    return fail(first_line(exception.what()));
  }
}

Result<Timing> Gpu::time(const KernelKey& key, const TimingOptions& given) const {
  try {
    TimingOptions options = state_->of_device(given);
    Program program = make_program(Target(state_->libraries.cudnn()), &state_->libraries, state_->settings, key);
    Timing timing;
    timing.sample.key = key;
    timing.sample.kept = kept_by_rule(key);
    if (program.steps.empty()) {  // a view: the device does nothing
      timing.sample.time = timing.best = Seconds{Stopwatch::shortest};
      timing.sample.runs = 1;
      return timing;
    }
    timing.rotation = plan_rotation(Bytes{static_cast<double>(program.bytes())}, options.cache, options.most_memory);
    const auto bytes = [](Bytes b) { return static_cast<std::size_t>(b.value()); };
    const int copies = timing.rotation.copies;
    Bench bench(state_->libraries, std::move(program), copies, bytes(timing.rotation.padding),
                bytes(timing.rotation.lap));
    timing.sample.workspace = Bytes{static_cast<double>(bench.workspace())};
    options.least_runs = std::max(options.least_runs, copies);
    int next = 0;  // copies take turns
    const auto turn = [&] { return std::exchange(next, (next + 1) % copies); };
    SIBYL_TRY(const auto times, time_work({{}, [&] { return bench.run(turn()); }}, options));
    const double middle = median(times);
    timing.sample.time = Seconds{middle};
    timing.sample.spread = relative_spread(times, middle);
    timing.sample.runs = static_cast<int>(times.size());
    timing.condition = state_->nvml.condition();
    if (!state_->settings.best) return timing;

    const Gain gain = gain_of_best(bench, copies);
    timing.best = Seconds{std::max(Stopwatch::shortest, middle - gain.seconds)};
    timing.best_engine = gain.name;
    if (!bench.program().fused.empty()) {
      SIBYL_TRY(const auto fused, time_work({{}, [&] { return bench.run_fused(turn()); }}, options));
      timing.best = std::min(timing.best, Seconds{median(fused)});
      timing.best_engine = "fused";
    }
    return timing;
  } catch (const std::exception& exception) {
    return fail(first_line(exception.what()), to_string(key));
  }
}

Result<void> Gpu::usable() const {
  cudaGetLastError();  // what a launch alone was refused for
  const cudaError_t status = cudaDeviceSynchronize();
  if (status == cudaSuccess) return {};
  return fail(fmt::format("CUDA: {}", cudaGetErrorString(status)));
}

Result<Device> Gpu::measure(const TimingOptions& given) const {
  try {
    const TimingOptions options = state_->of_device(given);
    const cudaDeviceProp& properties = state_->libraries.properties();
    Device device;
    device.name = properties.name;
    device.backend = Backend::cuda;
    device.memory = Bytes{static_cast<double>(properties.totalGlobalMem)};
    device.cache = Bytes{static_cast<double>(properties.l2CacheSize)};
    device.architecture = architecture_of(properties.major, properties.minor);
    device.multiprocessors = properties.multiProcessorCount;
    SIBYL_TRY(device.memory_bandwidth, measure_bandwidth(state_->libraries, options));
    const auto product = [&](const KernelKey& key) -> Result<Seconds> {
      SIBYL_TRY(const Timing timing, time(key, given));
      return timing.sample.time;
    };
    SIBYL_TRY(device.peak, measure_peaks(dtypes(), product));
    SIBYL_CHECK(usable());  // a type may be refused; a device that failed at it has told nothing
    // With the libraries' kernels loaded, and nothing of ours allocated.
    const auto now = state_->nvml.memory_in_use();
    if (now && state_->before)
      device.framework_base = *now - *state_->before;
    else
      device.framework_base = device.memory - Bytes{static_cast<double>(free_memory())};
    return device;
  } catch (const std::exception& exception) {
    return fail(first_line(exception.what()));
  }
}

Result<Seconds> Gpu::launch() const {
  try {
    return measure_launch(state_->libraries);
  } catch (const std::exception& exception) {
    return fail(first_line(exception.what()));
  }
}

Result<std::vector<Transfer>> Gpu::transfers(const TimingOptions& options) const {
  try {
    return measure_transfers(state_->libraries, state_->of_device(options));
  } catch (const std::exception& exception) {
    return fail(first_line(exception.what()));
  }
}

std::map<std::string, std::string> Gpu::machine() const {
  const cudaDeviceProp& p = state_->libraries.properties();
  std::map<std::string, std::string> facts{
      {"gpu", p.name},
      {"gpu_memory", fmt::format("{:.0f} GiB", static_cast<double>(p.totalGlobalMem) / (1024.0 * 1024 * 1024))},
      {"compute_capability", fmt::format("{}.{}", p.major, p.minor)},
      {"multiprocessors", std::to_string(p.multiProcessorCount)},
      {"layout", state_->settings.layout == Layout::nhwc ? "nhwc" : "nchw"}};
  if (const std::string driver = state_->nvml.driver(); !driver.empty()) facts["gpu_driver"] = driver;
  return facts;
}

std::map<std::string, std::string> Gpu::libraries() const {
  int runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  const std::size_t cudnn = cudnnGetVersion(), cublas = cublasLtGetVersion();
  const std::size_t major = cudnn >= 90000 ? 10000 : 1000;  // 8.9.7 is 8907, 9.1.0 is 90100
  return {{"cuda", fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10)},
          {"cudnn", fmt::format("{}.{}.{}", cudnn / major, cudnn % major / 100, cudnn % 100)},
          {"cublas", fmt::format("{}.{}.{}", cublas / 10000, cublas % 10000 / 100, cublas % 100)}};
}

Condition Gpu::condition() const { return state_->nvml.condition(); }

std::vector<DType> Gpu::dtypes() const {
  const cudaDeviceProp& p = state_->libraries.properties();
  std::vector<DType> types{DType::f32, DType::f16};
  if (p.major >= 8) types.insert(types.end(), {DType::tf32, DType::bf16});
#if CUDART_VERSION >= 11080
  if (p.major * 10 + p.minor >= 89) types.push_back(DType::f8e4m3);
#endif
  return types;
}

}  // namespace sibyl::cudnn

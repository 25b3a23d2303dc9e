#include "profiler/cudnn/facts.h"

#include <algorithm>
#include <chrono>

#include "base/statistics.h"
#include "profiler/cudnn/bench.h"

namespace sibyl::cudnn {
namespace {

// Pinned memory of the host.
class HostMemory {
 public:
  explicit HostMemory(std::size_t bytes) { check(cudaMallocHost(&data_, bytes), "pinned memory"); }
  ~HostMemory() { cudaFreeHost(data_); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace

Result<BytesPerSecond> measure_bandwidth(const Libraries& libraries, const TimingOptions& options) {
  const auto elements = static_cast<std::int64_t>(std::max(8.0 * options.cache.value(), 256e6) / sizeof(float));
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
  const Memory a(bytes), b(bytes), c(bytes);
  for (const Memory* memory : {&a, &b}) fill_values(Type::f32, memory->data(), elements, 1, libraries.stream());
  Stopwatch stopwatch(libraries);
  const TimedWork work{{}, [&] {
                         return stopwatch.time([&] {
                           point(Point::add_scaled, Type::f32, 0.5f, a.data(), b.data(), nullptr, c.data(), elements,
                                 libraries.stream());
                         });
                       }};
  SIBYL_TRY(const std::vector<double> times, time_work(work, options));
  return Bytes{3.0 * static_cast<double>(bytes)} / Seconds{*std::min_element(times.begin(), times.end())};
}

Result<std::map<DType, FlopsPerSecond>> measure_peaks(const std::vector<DType>& types,
                                                      const std::function<Result<Seconds>(const KernelKey&)>& time) {
  std::map<DType, FlopsPerSecond> peaks;
  for (const DType type : types) {
    const KernelKey key = large_product(type);
    const Result<Seconds> taken = time(key);
    if (taken)
      peaks[type] = work_of(key, Backend::cuda).flops / *taken;
    else if (type == DType::f32)
      return Failure(taken.error());
  }
  return peaks;
}

Seconds measure_launch(const Libraries& libraries) {
  constexpr int bursts = 21, launches = 200;  // a stream holds about a thousand before the host waits for it
  std::vector<double> times;
  for (int burst = 0; burst < bursts; ++burst) {
    check(cudaStreamSynchronize(libraries.stream()), "launches");
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) do_nothing(libraries.stream());
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / launches);
  }
  check(cudaStreamSynchronize(libraries.stream()), "launches");
  return Seconds{median(times)};
}

std::vector<Transfer> measure_transfers(const Libraries& libraries, const TimingOptions&) {
  constexpr std::size_t most = std::size_t{256} << 20;
  constexpr int runs = 9;
  const HostMemory host(most);
  const Memory device(most), other(most);
  Stopwatch stopwatch(libraries);
  std::vector<Transfer> result;
  const auto add = [&](const char* direction, void* to, const void* from, cudaMemcpyKind kind) {
    for (std::size_t bytes = 4096; bytes <= most; bytes *= 16) {
      std::vector<double> times;
      for (int i = 0; i < runs; ++i)
        times.push_back(
            stopwatch.time([&] { check(cudaMemcpyAsync(to, from, bytes, kind, libraries.stream()), "a copy"); }));
      result.push_back({direction, Bytes{static_cast<double>(bytes)}, Seconds{median(times)}});
    }
  };
  add("host_to_device", device.data(), host.data(), cudaMemcpyHostToDevice);
  add("device_to_host", host.data(), device.data(), cudaMemcpyDeviceToHost);
  add("device_to_device", other.data(), device.data(), cudaMemcpyDeviceToDevice);
  return result;
}

KernelKey large_product(DType type) {
  constexpr std::int64_t n = 8192;
  return {{Linear{}, {{n, n}, {n, n}}, {{n, n}}, type}, Pass::forward, 0};
}

std::string architecture_of(int major, int minor) {
  switch (major) {
    case 3: return "kepler";
    case 5: return "maxwell";
    case 6: return "pascal";
    case 7: return minor < 5 ? "volta" : "turing";
    case 8: return minor == 9 ? "ada" : minor == 0 ? "ampere" : "ampere-ga102";
    case 9: return "hopper";
    case 10:
    case 11:
    case 12: return "blackwell";
    default: return {};
  }
}

}  // namespace sibyl::cudnn

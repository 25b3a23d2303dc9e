#include "profiler/torch/limits.h"

#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/types.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>

#include "aten/device.h"
#include "aten/dtype.h"
#include "profiler/torch/clock.h"

namespace sibyl {
namespace {

// The shortest of the runs: a limit is what the machine reaches when nothing disturbs it.
Result<double> shortest_run(const std::function<void()>& run, const TimingOptions& options) {
  const TimedWork work{{}, [&] { return seconds_of([] {}, run); }};
  SIBYL_TRY(const std::vector<double> times, time_work(work, options));
  return *std::min_element(times.begin(), times.end());
}

}  // namespace

Result<FlopsPerSecond> measure_peak(const TimingOptions& options, DType type) {
  const std::int64_t n = aten::on_cuda() ? 8192 : 1536;
  if (aten::on_cuda()) aten::allow_tf32(type == DType::tf32);
  const at::TensorOptions here = at::TensorOptions(aten::compute_device()).dtype(aten::scalar_type(type));
  const at::Tensor a = at::rand({n, n}, here), b = at::rand({n, n}, here);
  at::Tensor c = at::empty({n, n}, here);
  SIBYL_TRY(const double seconds, shortest_run([&] { at::mm_out(c, a, b); }, options));
  return Flops{2.0 * std::pow(static_cast<double>(n), 3)} / Seconds{seconds};
}

Result<BytesPerSecond> measure_memory_bandwidth(const TimingOptions& options) {
  const Bytes own = aten::on_cuda() ? aten::device_limits().cache : last_level_cache();
  const Bytes cache = options.cache.value() > 0 ? options.cache : own;
  constexpr int arrays = 3;
  const double bytes = std::min(std::max(4.0 * cache.value(), 64e6), options.most_memory.value() / arrays);
  const auto elements = static_cast<std::int64_t>(bytes / sizeof(float));
  const at::TensorOptions here(aten::compute_device());
  const at::Tensor a = at::ones({elements}, here), b = at::ones({elements}, here);
  at::Tensor c = at::zeros({elements}, here);
  SIBYL_TRY(const double seconds, shortest_run([&] { at::add_out(c, a, b, 0.5); }, options));
  return Bytes{arrays * static_cast<double>(elements) * sizeof(float)} / Seconds{seconds};
}

std::function<void()> typical_work(std::int64_t extent, std::int64_t rows) {
  constexpr std::int64_t images = 2, channels = 128, features = 1024;
  const at::Tensor image = at::rand({images, channels, extent, extent}), filters = at::rand({channels, channels, 3, 3}),
                   mean = at::zeros({channels}), one = at::ones({channels}), words = at::rand({rows, features}),
                   weight = at::rand({features, features});
  return [=] {
    const at::Tensor active = at::threshold_backward(image, image, 0);
    const auto normal = at::native_batch_norm_backward(active, image, one, {}, {}, mean, one, true, 1e-5, {true, true, true});
    at::convolution_backward(std::get<0>(normal), image, filters, at::OptionalIntArrayRef(), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1,
                             {true, true, false});
    at::mm(words, weight);
    at::mm(words.t(), words);
  };
}

std::map<std::string, std::string> torch_versions() {
  std::map<std::string, std::string> versions{{"libtorch", TORCH_VERSION}};
  const std::string config = at::show_config();
  for (const auto& [name, key] : {std::pair{"onednn", "MKL-DNN v"}, std::pair{"mkl", "Math Kernel Library Version "}}) {
    const std::size_t at = config.find(key);
    if (at == std::string::npos) continue;
    const std::size_t start = at + std::string(key).size();
    versions[name] = config.substr(start, config.find_first_of(" \n,", start) - start);
  }
  // The BLAS is chosen when the process is linked, not when libtorch was built: ask the one that is loaded.
  if (void* symbol = dlsym(RTLD_DEFAULT, "openblas_get_config")) {
    const std::string blas = reinterpret_cast<const char* (*)()>(symbol)();  // "OpenBLAS 0.3.21 DYNAMIC_ARCH … Zen"
    versions["blas"] = blas.substr(0, blas.find(' ', blas.find(' ') + 1));
  }
  return versions;
}

}  // namespace sibyl

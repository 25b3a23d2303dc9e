#include "profiler/cudnn/nvml.h"

#include <dlfcn.h>

#include <array>

namespace sibyl::cudnn {
namespace {

// NVML's names and numbers are fixed by its ABI; its header is not needed for these few.
constexpr int success = 0;
constexpr unsigned sm_clock = 1, memory_clock = 2, die = 0;

struct MemoryInfo {
  unsigned long long total, free, used;
};

template <class F>
F* symbol(void* library, const char* name) {
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

// 0 where it cannot be asked.
template <class... Arguments>
unsigned ask(void* library, void* device, const char* name, Arguments... arguments) {
  unsigned value = 0;
  auto* function = symbol<int(void*, Arguments..., unsigned*)>(library, name);
  return device && function && function(device, arguments..., &value) == success ? value : 0;
}

}  // namespace

Nvml::Nvml(const std::string& pci) : library_(dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL)) {
  auto* start = symbol<int()>(library_, "nvmlInit_v2");
  auto* find = symbol<int(const char*, void**)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
  if (!start || !find || start() != success || find(pci.c_str(), &device_) != success) device_ = nullptr;
}

Nvml::~Nvml() {
  if (auto* stop = symbol<int()>(library_, "nvmlShutdown")) stop();
  if (library_) dlclose(library_);
}

Condition Nvml::condition() const {
  Condition now;
  now.clock_hz = 1e6 * ask(library_, device_, "nvmlDeviceGetClockInfo", sm_clock);
  now.memory_clock_hz = 1e6 * ask(library_, device_, "nvmlDeviceGetClockInfo", memory_clock);
  now.temperature_c = ask(library_, device_, "nvmlDeviceGetTemperature", die);
  now.power_w = 1e-3 * ask(library_, device_, "nvmlDeviceGetPowerUsage");
  return now;
}

std::optional<Bytes> Nvml::memory_in_use() const {
  MemoryInfo info{};
  auto* function = symbol<int(void*, MemoryInfo*)>(library_, "nvmlDeviceGetMemoryInfo");
  if (!device_ || !function || function(device_, &info) != success) return std::nullopt;
  return Bytes{static_cast<double>(info.used)};
}

std::string Nvml::driver() const {
  std::array<char, 80> text{};
  auto* function = symbol<int(char*, unsigned)>(library_, "nvmlSystemGetDriverVersion");
  return function && function(text.data(), text.size()) == success ? text.data() : "";
}

}  // namespace sibyl::cudnn

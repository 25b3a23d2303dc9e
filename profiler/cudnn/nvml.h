// The driver's management library, loaded when the program runs: clocks, temperature, power, memory in use. Machines
// without it (containers, mostly) lack only these.
#pragma once

#include <optional>
#include <string>

#include "profiler/cudnn/gpu.h"

namespace sibyl::cudnn {

class Nvml {
 public:
  // Of the device at this PCI address, "0000:3b:00.0".
  explicit Nvml(const std::string& pci);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] Condition condition() const;
  [[nodiscard]] std::optional<Bytes> memory_in_use() const;
  [[nodiscard]] std::string driver() const;  // "580.159.04"; empty where unknown

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace sibyl::cudnn

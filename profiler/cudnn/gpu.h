// An NVIDIA device whose kernels are timed through cuDNN, cuBLASLt and CUDA themselves, without PyTorch: the same keys
// and the same samples as profiler/torch gives for a CPU. No CUDA type shows here.
//
// A sample is device time: a kernel waits behind a gate until all of its run is enqueued, and events before and after
// it are compared with events that have nothing between them. What the host needs to launch it is not in it. Operands
// rotate through copies larger than twice the L2 cache, as rotation.h tells; the operand that the previous operation of
// a step would have written is written again first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "profiler/cudnn/rotation.h"
#include "profiler/kernel_table.h"
#include "profiler/torch/timing.h"

namespace sibyl::cudnn {

enum class Layout { nchw, nhwc };  // of images in memory; shapes are N C H W in both

struct Settings {
  int device = 0;
  Layout layout = Layout::nchw;
  bool best = false;  // time all engines and algorithms of a step, too, and fused updates
};

// How fast and how hot it was; 0 where the driver's library does not tell.
struct Condition {
  double clock_hz = 0, memory_clock_hz = 0, temperature_c = 0, power_w = 0;
};

// A copy between host and device, or on it.
struct Transfer {
  std::string direction;  // "host_to_device", "device_to_host", "device_to_device"; of pinned memory
  Bytes bytes;
  Seconds time;
};

struct Timing {
  KernelSample sample;
  Seconds best;  // of all engines and algorithms; 0 unless asked for
  std::string best_engine;
  Condition condition;
  Rotation rotation;
};

class Gpu {
 public:
  // An Error where there is no device or driver, saying which.
  static Result<Gpu> open(const Settings& settings);
  ~Gpu();
  Gpu(Gpu&&) noexcept;
  Gpu& operator=(Gpu&&) noexcept;

  // A key that no library here has a kernel for is an Error naming it.
  [[nodiscard]] Result<Timing> time(const KernelKey& key, const TimingOptions& options) const;

  // An Error once the device has failed (an illegal address, a lost board): this process times nothing on it any more.
  // After a refusal that was the kernel's own there is none.
  [[nodiscard]] Result<void> usable() const;

  // Peak by type (the fastest of large matrix products), bandwidth, memory, L2, multiprocessors, architecture, and what
  // context and libraries hold. Not what an operation takes the host: a framework does more for it than to launch.
  [[nodiscard]] Result<Device> measure(const TimingOptions& options) const;
  [[nodiscard]] Result<Seconds> launch() const;  // the host's time for an empty one
  [[nodiscard]] Result<std::vector<Transfer>> transfers(const TimingOptions& options) const;

  [[nodiscard]] std::map<std::string, std::string> machine()
      const;  // gpu, gpu_memory, compute_capability, driver, layout
  [[nodiscard]] std::map<std::string, std::string> libraries() const;  // cuda, cudnn, cublas
  [[nodiscard]] Condition condition() const;
  [[nodiscard]] std::vector<DType> dtypes() const;  // that its matrix products compute in

 private:
  struct State;
  explicit Gpu(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sibyl::cudnn

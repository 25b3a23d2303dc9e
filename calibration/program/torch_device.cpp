#include "calibration/program/torch_device.h"

#include <exception>
#include <string>

#include "aten/device.h"
#include "base/statistics.h"
#include "calibration/program/fingerprint.h"
#include "calibration/unmeasured.h"
#include "profiler/torch/limits.h"

namespace sibyl {
namespace {

// A limit that is stored already is not measured again, so that a resumed run does not change the device under its
// samples.
bool known(const Ranks& ranks, bool on_first) { return ranks.greatest(ranks.first() && on_first ? 1 : 0) == 1; }

// A GPU's own: a rank has it to itself.
Result<void> measure_gpu(const Ranks& ranks, Calibration& calibration, const TimingOptions& options) {
  SIBYL_TRY(const BytesPerSecond bandwidth, measure_memory_bandwidth(options));
  std::map<DType, FlopsPerSecond> peak;
  for (const DType type : {DType::f32, DType::tf32, DType::f16, DType::bf16}) {
    SIBYL_TRY(peak[type], measure_peak(options, type));
  }
  if (!ranks.first()) return {};
  const aten::DeviceLimits limits = aten::device_limits();
  Device& device = calibration.device;
  device.name = limits.name;
  device.backend = Backend::cuda;
  device.peak = std::move(peak);
  device.memory_bandwidth = bandwidth;
  device.memory = limits.memory;
  device.cache = limits.cache;
  device.framework_base = aten::held_memory().context;  // with the libraries' kernels loaded
  add_shipped(calibration);
  return {};
}

}  // namespace

TimingOptions timed_together(TimingOptions options, const Ranks& ranks) {
  if (ranks.size() > 1)
    options.agree = [&ranks](Vote vote) { return static_cast<Vote>(ranks.greatest(static_cast<int>(vote))); };
  return options;
}

Result<void> measure_device(const Ranks& ranks, Session& session, const TimingOptions& options) {
  Device& device = session.calibration().device;
  if (known(ranks, device.memory_bandwidth.value() > 0)) return {};
  if (aten::on_cuda()) return measure_gpu(ranks, session.calibration(), options);
  SIBYL_TRY(const FlopsPerSecond peak, measure_peak(options));
  SIBYL_TRY(const BytesPerSecond bandwidth, measure_memory_bandwidth(options));
  const double middle_peak = median(ranks.gather(peak.value()));
  const double middle_bandwidth = median(ranks.gather(bandwidth.value()));
  if (!ranks.first()) return {};
  device.name = session.calibration().machine["cpu"];
  device.backend = Backend::cpu;
  device.peak[DType::f32] = FlopsPerSecond{middle_peak};
  device.memory_bandwidth = BytesPerSecond{middle_bandwidth};
  device.memory = machine_memory() / ranks.per_node();
  // The trainer reports the bytes of tensors, not those of the process: nothing of the framework is in them.
  device.framework_base = Bytes{0};
  device.dispatch = Seconds{0};  // kernels run on the host itself, and samples contain their launch
  return {};
}

Result<void> gpu_is_usable() {
  try {
    aten::wait_for_device();
    return {};
  } catch (const std::exception& exception) {
    const std::string text = exception.what();
    return fail(text.substr(0, text.find('\n')));
  }
}

}  // namespace sibyl

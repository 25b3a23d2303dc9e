#include "profiler/interpolation/roofline.h"

#include <algorithm>

namespace sibyl::interpolation {
namespace {

FlopsPerSecond peak_of(const Device& device, DType dtype) {
  for (const DType type : {dtype, DType::f32, DType::f64})
    if (const auto found = device.peak.find(type); found != device.peak.end() && found->second.value() > 0)
      return found->second;
  return FlopsPerSecond{device.backend == Backend::cuda ? 1e13 : 1e11};
}

}  // namespace

Seconds Roofline::time(const Work& work) const {
  return std::max(work.flops / peak, (work.read + work.written) / bandwidth) + start_up;
}

bool Roofline::compute_bound(const Work& work) const {
  return work.flops / peak > (work.read + work.written) / bandwidth;
}

Roofline datasheet_roofline(const Device& device, DType dtype) {
  const bool cuda = device.backend == Backend::cuda;
  const BytesPerSecond bandwidth =
      device.memory_bandwidth.value() > 0 ? device.memory_bandwidth : BytesPerSecond{cuda ? 5e11 : 1e10};
  return {peak_of(device, dtype), bandwidth, Seconds{cuda ? 2e-6 : 1e-6}};
}

double usual_slowdown(const Roofline& roofline, const Work& work) {
  return roofline.compute_bound(work) ? 1.6 : 1.2;
}

}  // namespace sibyl::interpolation

// The least time a kernel can take: t = max(FLOPs / peak, bytes / bandwidth) + start-up (Williams et al., CACM 2009). Samples
// are interpolated relative to it, so that only the efficiency, which changes slowly with size, is interpolated.
#pragma once

#include "profiler/device.h"

namespace sibyl::interpolation {

struct Roofline {
  FlopsPerSecond peak;
  BytesPerSecond bandwidth;
  Seconds start_up;

  [[nodiscard]] Seconds time(const Work& work) const;
  [[nodiscard]] bool compute_bound(const Work& work) const;
};

// From the datasheet. A type without a peak of its own takes the one it is carried out in (f32 for most).
Roofline datasheet_roofline(const Device& device, DType dtype);

// What kernels usually reach of it, for kernels of which no relative was measured: medians over the shipped
// measurements (docs/models/compute.md), as a factor on time.
double usual_slowdown(const Roofline& roofline, const Work& work);

}  // namespace sibyl::interpolation

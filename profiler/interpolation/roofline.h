// The least time a kernel can take: t = max(FLOPs / peak, bytes / bandwidth) + start-up (Williams et al., CACM 2009).
// Samples are interpolated relative to it, so that only the efficiency, which changes slowly with size, is
// interpolated.
#pragma once

#include "profiler/device.h"

namespace sibyl::interpolation {

struct Roofline {
  FlopsPerSecond peak;
  BytesPerSecond bandwidth;
  Seconds start_up;

  [[nodiscard]] Seconds time(const Work& work) const;
};

// From the datasheet. A type without a peak of its own takes the one it is carried out in (f32 for most).
Roofline datasheet_roofline(const Device& device, DType dtype);

// How many times the roofline's time a kernel of this operation usually takes, for where no relative of it was
// measured: medians over the shipped measurements (docs/models/compute.md).
double usual_slowdown(const Attributes& attributes);

}  // namespace sibyl::interpolation

// Where to look when a kernel's own family has no samples: other families of the device that use it alike. All that
// comes from here is called estimated.
#pragma once

#include <vector>

#include "profiler/interpolation/family.h"

namespace sibyl::interpolation {

// What a kernel at `place` takes relative to its ideal time, this one takes `slowdown` times, give or take `error`.
struct Relative {
  Place place;
  double slowdown = 1.0;
  double error = 0.2;
};

// Best first; the same element type always.
std::vector<Relative> related(const KernelKey& key, Backend backend);

// Element types in which the same kernel uses its units much as in its own, best first: what it takes relative to its
// ideal time carries over, give or take `error`.
struct Substitute {
  DType dtype;
  double error;
};
std::vector<Substitute> substitutes(const KernelKey& key);

}  // namespace sibyl::interpolation

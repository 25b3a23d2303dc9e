#include "profiler/cudnn/rotation.h"

#include <algorithm>
#include <cmath>

namespace sibyl::cudnn {

Rotation plan_rotation(Bytes one_copy, Bytes cache, Bytes most_memory) {
  constexpr double most_copies = 16;
  const double goal = 2.0 * cache.value() + 1.0, one = std::max(one_copy.value(), 1.0);
  double copies = std::clamp(std::ceil(goal / one), 1.0, most_copies);
  copies = std::max(1.0, std::min(copies, std::floor(most_memory.value() / one)));
  const double padding = std::max(0.0, goal / copies - one);
  return {static_cast<int>(copies), Bytes{padding}, Bytes{copies * (one + padding)}};
}

}  // namespace sibyl::cudnn

// How many kernels take turns while they are timed (profiler/torch/timing.h).
#pragma once

#include <span>

#include "profiler/kernel_key.h"

namespace sibyl {

// Samples are kept once all of a turn are taken, so it must not be long.
inline constexpr std::size_t most_in_turn = 64;

// Of the keys, from the first on: as many as it takes for their operands to be a lap's bytes, one at least, and no more
// than memory holds.
std::size_t in_turn(std::span<const KernelKey> keys, Bytes lap, Bytes most_memory);

}  // namespace sibyl

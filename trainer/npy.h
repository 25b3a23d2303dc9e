// Arrays from .npy files (NumPy's format, version 1 to 3: docs at numpy.lib.format), little-endian, C order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "models/shape.h"

namespace sibyl::trainer {

// Numbers become f32 where they are floating, and i64 where they are whole: the other vector is empty.
struct NpyArray {
  Shape shape;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
};

Result<NpyArray> read_npy(const std::filesystem::path& path);

}  // namespace sibyl::trainer

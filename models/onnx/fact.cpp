#include "models/onnx/fact.h"

namespace sibyl::onnx_import {

bool is_sane(const Shape& shape) {
  constexpr std::size_t highest_rank = 32;
  constexpr std::int64_t most_elements = std::int64_t{1} << 62;
  if (shape.size() > highest_rank) return false;
  // A zero extent makes the tensor empty, but a view of it may drop that axis: the rest must be sane, too.
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return false;
    if (extent == 0) continue;
    if (extent > most_elements / count) return false;
    count *= extent;
  }
  return true;
}

}  // namespace sibyl::onnx_import

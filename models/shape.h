// A tensor's extents. A scalar has no extents; every extent is at least 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sibyl {

using Shape = std::vector<std::int64_t>;

// The product of the extents (1 for a scalar). Overflow is excluded by the importer: it refuses tensors of more
// than 2^62 elements.
std::int64_t element_count(const Shape& shape);

std::string to_string(const Shape& shape);  // "8x64x56x56", "scalar"

}  // namespace sibyl

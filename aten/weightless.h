// Tensors with sizes and no memory, whose bytes the MemoryMeter counts as long as their storage lives: what an emulated
// device holds.
#pragma once

#include <torch/types.h>
#include <cstddef>

#include "models/shape.h"

namespace sibyl::aten {

// On the meta device, contiguous. Counts as its bytes rounded up to `granularity`.
at::Tensor weightless(const Shape& shape, c10::ScalarType type, std::size_t granularity);
// Of the same storage, with another shape, be it larger (an expanded view).
at::Tensor weightless_view(const at::Tensor& of, const Shape& shape);

}  // namespace sibyl::aten

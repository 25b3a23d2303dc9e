// Tensors with sizes and no memory, whose bytes the MemoryMeter counts as long as their storage lives: what an emulated
// device holds. They are those of torch's meta device, so what torch makes of them by itself (sums of gradients, copies,
// zeros like another) counts like everything else.
#pragma once

#include <torch/types.h>
#include <cstddef>

#include "models/shape.h"

namespace sibyl::aten {

// From here on every storage of the meta device counts as its bytes rounded up to `granularity`. What the meta device adds
// up in a third tensor, a device adds up in one of the two unless it `sums_apart`, too.
void count_weightless(std::size_t granularity, bool sums_apart);

at::Tensor weightless(const Shape& shape, c10::ScalarType type);
// Of the same storage, with another shape, be it larger (an expanded view).
at::Tensor weightless_view(const at::Tensor& of, const Shape& shape);
at::Tensor weightless_view(const at::Tensor& of, const Shape& shape, c10::ScalarType type);  // as if of another type
// The storage of `of`, and of all views of it, now counts as so many bytes. The sizes stay what they are.
void resize_weightless(const at::Tensor& of, std::size_t bytes);

}  // namespace sibyl::aten

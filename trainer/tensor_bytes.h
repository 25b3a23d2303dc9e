// Tensors as messages see them.
#pragma once

#include <torch/types.h>
#include <cstddef>
#include <span>

#include "aten/dtype.h"
#include "comm/elements.h"
#include "oracle/plan/plan.h"

namespace sibyl::trainer {

// Of a contiguous tensor.
inline std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// What ranks sum.
inline Element element_of(c10::ScalarType type) {
  switch (type) {
    case at::kFloat: return Element::f32;
    case at::kBFloat16: return Element::bf16;
    case at::kHalf: return Element::f16;
    default: break;
  }
  TORCH_CHECK(false, "only f32, bf16 and f16 are summed over ranks");
}

// Of a contiguous tensor of such.
inline Elements elements_of(const at::Tensor& tensor) { return {bytes_of(tensor), element_of(tensor.scalar_type())}; }

inline at::Tensor room_for(const LocalTensor& local) {
  return at::empty(local.shape, at::TensorOptions().dtype(aten::scalar_type(local.dtype)));
}

}  // namespace sibyl::trainer

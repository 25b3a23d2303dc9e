// Tensors as messages see them.
#pragma once

#include <torch/types.h>
#include <cstddef>
#include <span>

#include "aten/dtype.h"
#include "oracle/plan/plan.h"

namespace sibyl::trainer {

// Of a contiguous tensor.
inline std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

inline at::Tensor room_for(const LocalTensor& local) {
  return at::empty(local.shape, at::TensorOptions().dtype(aten::scalar_type(local.dtype)));
}

}  // namespace sibyl::trainer

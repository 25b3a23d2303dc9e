// Transposition, concatenation and sum that leave contiguous tensors in both passes.
//
// ATen's permute is a view, and so are the gradients of cat and of a sum: whoever reads them next copies them first, or
// runs slower for their strides. The copy would then hide in the time of an operation that has nothing to do with it.
// Here it is made where it arises, so that a kernel's time depends on its own signature alone.
#pragma once

#include "aten/operations/families.h"

namespace sibyl::aten {

at::Tensor contiguous_permute(const at::Tensor& x, const std::vector<std::int64_t>& permutation);
at::Tensor contiguous_concat(const Tensors& parts, std::int64_t axis);
at::Tensor contiguous_sum(const at::Tensor& x, const std::vector<std::int64_t>& axes, bool keep_dims);

}  // namespace sibyl::aten

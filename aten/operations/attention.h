// What attention is made of, whole or in a ring.
#pragma once

#include <torch/types.h>
#include <cstdint>

namespace sibyl::aten {

// True above the diagonal: the keys a query may not see. The last query sees all but the last `behind`.
at::Tensor causal_mask(const at::Tensor& scores, std::int64_t behind);

// [B, Hkv, T, D] -> [B, H, T, D]: each key head serves heads / Hkv query heads.
at::Tensor repeat_heads(const at::Tensor& x, std::int64_t heads);

}  // namespace sibyl::aten

// What of an operation's work is convolutions and matrix products: what published counts of FLOPs have in them, a
// multiply-add as two. Additions of biases, normalizations, activations and softmax are not.
#pragma once

#include <cstdint>

#include "models/training/training.h"

namespace sibyl {

struct ProductWork {
  Flops forward, backward;  // nothing of an operation that has none
};

// `gradients` as training_rule() takes it. Attention's backward has four products; on CUDA its kernel does one of
// forward's again (rules/attention.cpp).
ProductWork product_work(const Signature& signature, std::uint32_t gradients, Backend backend);

}  // namespace sibyl

// Where backward allocates nothing: an operation whose input gradient is its output gradient, or a view of it.
#pragma once

#include <cstddef>

#include "models/signature.h"

namespace sibyl {

bool passes_gradient_through(const Signature& signature, std::size_t operand);

}  // namespace sibyl

// Our element types as ATen's.
#pragma once

#include <c10/core/ScalarType.h>

#include "models/dtype.h"

namespace sibyl::aten {

// tf32 is stored as f32. Throws c10::Error for the 8-bit floats, which libtorch 1.13 does not have.
c10::ScalarType scalar_type(DType type);

}  // namespace sibyl::aten

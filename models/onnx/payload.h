// Elements of a small tensor from the bytes of TensorProto.raw_data.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/onnx/fact.h"

namespace sibyl::onnx_import {

// `type` is a TensorProto.DataType. Null: a type whose elements are not needed, or fewer bytes than `count` elements.
KnownValues decode_raw(std::string_view bytes, int type, std::int64_t count);
// The same for int32_data, which also holds the bits of narrower types.
double decode_int32(std::int32_t stored, int type);

}  // namespace sibyl::onnx_import

// Element types. tf32 is a way of computing on f32 storage: as a kernel's type it selects the kernel; it takes 4 bytes.
#pragma once

#include <optional>
#include <string_view>

#include "base/units.h"

namespace sibyl {

enum class DType { f64, f32, tf32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, u8, boolean };

double size_in_bytes(DType type);       // of one element
std::string_view to_string(DType type);  // "f32", "bf16", "i64", …
std::optional<DType> parse_dtype(std::string_view text);
bool is_floating(DType type);

}  // namespace sibyl

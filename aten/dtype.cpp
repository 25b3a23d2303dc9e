#include "aten/dtype.h"

#include <c10/util/Exception.h>

#include <string>

namespace sibyl::aten {

c10::ScalarType scalar_type(DType type) {
  switch (type) {
    case DType::f64: return c10::ScalarType::Double;
    case DType::f32:
    case DType::tf32: return c10::ScalarType::Float;
    case DType::f16: return c10::ScalarType::Half;
    case DType::bf16: return c10::ScalarType::BFloat16;
    case DType::i64: return c10::ScalarType::Long;
    case DType::i32: return c10::ScalarType::Int;
    case DType::i16: return c10::ScalarType::Short;
    case DType::i8: return c10::ScalarType::Char;
    case DType::u8: return c10::ScalarType::Byte;
    case DType::boolean: return c10::ScalarType::Bool;
    case DType::f8e4m3:
    case DType::f8e5m2: break;
  }
  TORCH_CHECK(false, "libtorch has no element type ", std::string(to_string(type)));
}

}  // namespace sibyl::aten

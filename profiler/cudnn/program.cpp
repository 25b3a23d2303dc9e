#include "profiler/cudnn/program.h"

#include <algorithm>
#include <variant>

namespace sibyl::cudnn {
namespace {

std::size_t element_bytes(Type type) {
  switch (type) {
    case Type::f32: return 4;
    case Type::f16:
    case Type::bf16: return 2;
    case Type::i64: return 8;
    case Type::f8e4m3:
    case Type::f8e5m2:
    case Type::u8: break;
  }
  return 1;
}

}  // namespace

std::size_t Buffer::bytes() const {
  return element_bytes(type) * static_cast<std::size_t>(std::max<std::int64_t>(0, count));
}

std::size_t Program::bytes() const {
  std::size_t total = 0;
  for (const Buffer& buffer : buffers) total += buffer.bytes();
  return total;
}

Type type_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::tf32: return Type::f32;
    case DType::f16: return Type::f16;
    case DType::bf16: return Type::bf16;
    case DType::f8e4m3: return Type::f8e4m3;
    case DType::f8e5m2: return Type::f8e5m2;
    case DType::i64: return Type::i64;
    case DType::boolean:
    case DType::u8: return Type::u8;
    default: break;
  }
  throw Refusal("the cudnn backend does not compute in " + std::string(to_string(type)));
}

bool computes_in_tf32(const KernelKey& key) { return key.signature.dtype == DType::tf32; }

Program make_program(const Target& target, const Libraries* libraries, const Settings& settings, const KernelKey& key) {
  const Maker maker{target, libraries, settings, key, type_of(key.signature.dtype)};
  return std::visit([&](const auto& op) { return program(op, maker); }, key.signature.attributes);
}

}  // namespace sibyl::cudnn

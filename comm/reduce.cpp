#include <algorithm>
#include <cstdint>

#include "comm/collectives.h"
#include "comm/half.h"

namespace sibyl::comm {
namespace {

struct InF32 {
  using Stored = float;
  static float load(float value) { return value; }
  static float store(float value) { return value; }
};
struct InBf16 {
  using Stored = std::uint16_t;
  static float load(Stored bits) { return from_bf16(bits); }
  static Stored store(float value) { return to_bf16(value); }
};
struct InF16 {
  using Stored = std::uint16_t;
  static float load(Stored bits) { return from_f16(bits); }
  static Stored store(float value) { return to_f16(value); }
};

struct Sum {
  static float of(float a, float b) { return a + b; }
};
struct Greater {
  static float of(float a, float b) { return std::max(a, b); }
};

// Scratch buffers come from operator new, aligned for any number; chunks begin at multiples of chunk_bytes.
template <class Type, class Operation>
void reduce_each(std::span<std::byte> target, std::span<const std::byte> source) {
  auto* own = reinterpret_cast<typename Type::Stored*>(target.data());
  const auto* other = reinterpret_cast<const typename Type::Stored*>(source.data());
  const std::size_t count = target.size() / sizeof(typename Type::Stored);
  for (std::size_t i = 0; i < count; ++i) own[i] = Type::store(Operation::of(Type::load(own[i]), Type::load(other[i])));
}

template <class Type>
Reduce in_type(Reduction reduction) {
  return reduction == Reduction::sum ? reduce_each<Type, Sum> : reduce_each<Type, Greater>;
}

}  // namespace

Reduce reduce_of(Element type, Reduction reduction) {
  switch (type) {
    case Element::bf16: return in_type<InBf16>(reduction);
    case Element::f16: return in_type<InF16>(reduction);
    case Element::f32: break;
  }
  return in_type<InF32>(reduction);
}

}  // namespace sibyl::comm

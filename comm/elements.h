// Numbers of one type in a row, as ranks reduce them.
#pragma once

#include <cstddef>
#include <span>

namespace sibyl {

enum class Element { f32, bf16, f16 };

constexpr std::size_t width_of(Element type) { return type == Element::f32 ? 4 : 2; }

struct Elements {
  std::span<std::byte> bytes;
  Element type = Element::f32;

  [[nodiscard]] std::size_t size() const { return bytes.size() / width_of(type); }
  [[nodiscard]] Elements part(std::size_t begin, std::size_t count) const {
    return {bytes.subspan(begin * width_of(type), count * width_of(type)), type};
  }
};

inline Elements elements(std::span<float> values) { return {std::as_writable_bytes(values), Element::f32}; }

}  // namespace sibyl

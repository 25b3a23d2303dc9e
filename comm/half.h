// Floating-point numbers of two bytes: bf16 is the upper half of an f32, f16 is IEEE 754's binary16. f32 becomes the
// nearest of them, of two as near the one whose last bit is 0; what is beyond the largest becomes infinite. Right also
// where the processor takes small f32 for zero (aten/runtime.h).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sibyl::comm {

inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

inline std::uint16_t to_bf16(float value) {
  if (std::isnan(value)) return 0x7fc0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

// A sign, 5 bits of exponent, 10 of mantissa; an exponent of 0 stands for multiples of 2^-24.
inline float from_f16(std::uint16_t bits) {
  const std::uint32_t exponent = (bits >> 10) & 0x1fU, mantissa = bits & 0x3ffU;
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * (static_cast<float>(mantissa) * 0x1p-24F);
  if (exponent < 0x1f) return sign * std::bit_cast<float>(((exponent + (127 - 15)) << 23) | (mantissa << 13));
  return sign * (mantissa == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN());
}

inline std::uint16_t to_f16(float value) {
  constexpr std::uint32_t infinite = 0x7c00, none = 0x7e00, bias = (127U - 15U) << 23;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const float size = std::fabs(value);
  std::uint32_t result = none;
  if (size < 0x1p-14F)
    result = static_cast<std::uint32_t>(std::nearbyint(size * 0x1p24F));
  else if (size < 65520.0F)  // from there on rounding leads beyond 65504, the largest
    result = ((bits & 0x7fffffffU) - bias + 0xfffU + ((bits >> 13) & 1U)) >> 13;
  else if (!std::isnan(value))
    result = infinite;
  return static_cast<std::uint16_t>(sign | result);
}

}  // namespace sibyl::comm

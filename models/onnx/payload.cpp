#include "models/onnx/payload.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace sibyl::onnx_import {
namespace {

double from_half(std::uint16_t bits) {
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10u) & 0x1F;
  const double fraction = (bits & 0x3FFu) / 1024.0;
  if (exponent == 0) return sign * std::ldexp(fraction, -14);
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * std::ldexp(1.0 + fraction, exponent - 15);
}

double from_bfloat(std::uint16_t bits) { return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16u)); }

template <class T>
double load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);  // ONNX stores little-endian; so does every machine we build for
  return static_cast<double>(value);
}

template <double (*convert)(std::uint16_t)>
double load_bits(const char* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return convert(bits);
}

struct Format {
  std::size_t size = 0;
  double (*load)(const char*) = nullptr;
};

Format format_of(int type) {
  switch (type) {
    case 1: return {4, load<float>};
    case 2: return {1, load<std::uint8_t>};
    case 3: return {1, load<std::int8_t>};
    case 4: return {2, load<std::uint16_t>};
    case 5: return {2, load<std::int16_t>};
    case 6: return {4, load<std::int32_t>};
    case 7: return {8, load<std::int64_t>};
    case 9: return {1, load<std::uint8_t>};
    case 10: return {2, load_bits<from_half>};
    case 11: return {8, load<double>};
    case 12: return {4, load<std::uint32_t>};
    case 13: return {8, load<std::uint64_t>};
    case 16: return {2, load_bits<from_bfloat>};
    default: return {};
  }
}

}  // namespace

KnownValues decode_raw(std::string_view bytes, int type, std::int64_t count) {
  const Format format = format_of(type);
  if (format.load == nullptr || bytes.size() / format.size < static_cast<std::size_t>(count)) return nullptr;
  auto values = std::make_shared<Values>();
  values->reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values->push_back(format.load(bytes.data() + static_cast<std::size_t>(i) * format.size));
  return values;
}

double decode_int32(std::int32_t stored, int type) {
  if (type == 10) return from_half(static_cast<std::uint16_t>(stored));
  if (type == 16) return from_bfloat(static_cast<std::uint16_t>(stored));
  return stored;
}

}  // namespace sibyl::onnx_import

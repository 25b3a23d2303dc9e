#include "oracle/strategy.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace sibyl {
namespace {

constexpr std::array<std::string_view, 4> precision_names = {"fp32", "tf32", "fp16", "bf16"};

std::string choices(auto&& names) {
  std::string text;
  for (const std::string_view name : names) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text;
}

template <class Enum>
Result<Enum> parse_choice(std::string_view text, auto&& names, std::string_view what) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  return fail(ErrorCode::usage, fmt::format("'{}' is not {}", text, what), {}, fmt::format("one of {}", choices(names)));
}

}  // namespace

DType compute_type(Precision precision) {
  switch (precision) {
    case Precision::fp32: return DType::f32;
    case Precision::tf32: return DType::tf32;
    case Precision::fp16: return DType::f16;
    case Precision::bf16: return DType::bf16;
  }
  return DType::f32;
}

std::string_view to_string(Precision precision) { return precision_names[static_cast<std::size_t>(precision)]; }
Result<Precision> parse_precision(std::string_view text) {
  return parse_choice<Precision>(text, precision_names, "a precision");
}

std::string_view to_string(OptimizerKind kind) { return enum_names(kind)[static_cast<std::size_t>(kind)]; }
Result<OptimizerKind> parse_optimizer(std::string_view text) {
  return parse_choice<OptimizerKind>(text, enum_names(OptimizerKind{}), "an optimizer");
}

Result<void> parse_parallel(std::string_view text, Strategy& strategy) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const std::size_t equals = entry.find('=');
    const std::string_view axis = entry.substr(0, equals);
    if (axis != "data")
      return fail(ErrorCode::usage, fmt::format("'{}' is not an axis of parallelism", axis), "--parallel", "data=N");
    int degree = 0;
    const std::string_view number = equals == std::string_view::npos ? "" : entry.substr(equals + 1);
    const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), degree);
    if (status != std::errc{} || end != number.data() + number.size() || degree < 1)
      return fail(ErrorCode::usage, fmt::format("'{}' needs a whole number of at least 1", entry), "--parallel", "data=8");
    strategy.data = degree;
  }
  return {};
}

std::string parallel_text(const Strategy& strategy) { return fmt::format("data={}", strategy.data); }

}  // namespace sibyl

#include "models/signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <functional>
#include <optional>
#include <type_traits>

#include "base/hash.h"

namespace sibyl {
namespace {

// One attribute's value as text: vectors 3x3 ("-" when empty), enumerations by name, numbers shortest round-trip.
template <class T>
std::string field_text(const T& value) {
  if constexpr (std::is_same_v<T, Ints>)
    return value.empty() ? "-" : fmt::format("{}", fmt::join(value, "x"));
  else if constexpr (std::is_same_v<T, DType>)
    return std::string(to_string(value));
  else if constexpr (std::is_enum_v<T>)
    return std::string(enum_names(value)[static_cast<std::size_t>(value)]);
  else if constexpr (std::is_same_v<T, bool>)
    return value ? "1" : "0";
  else
    return fmt::format("{}", value);
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc{} && end == text.data() + text.size();
}

bool parse_ints(std::string_view text, Ints& values) {
  values.clear();
  if (text == "-") return true;
  while (true) {
    const std::size_t cross = text.find('x');
    std::int64_t value = 0;
    if (!parse_number(text.substr(0, cross), value)) return false;
    values.push_back(value);
    if (cross == std::string_view::npos) return true;
    text.remove_prefix(cross + 1);
  }
}

template <class T>
bool parse_field(std::string_view text, T& value) {
  if constexpr (std::is_same_v<T, Ints>) {
    return parse_ints(text, value);
  } else if constexpr (std::is_same_v<T, DType>) {
    const auto parsed = parse_dtype(text);
    if (parsed) value = *parsed;
    return parsed.has_value();
  } else if constexpr (std::is_enum_v<T>) {
    const auto names = enum_names(value);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == text) {
        value = static_cast<T>(i);
        return true;
      }
    return false;
  } else if constexpr (std::is_same_v<T, bool>) {
    value = text == "1";
    return text == "0" || text == "1";
  } else {
    return parse_number(text, value);
  }
}

// The alternative of Attributes whose name is `name`, at its defaults.
template <std::size_t I = 0>
std::optional<Attributes> default_attributes(std::string_view name) {
  if constexpr (I == std::variant_size_v<Attributes>) {
    return std::nullopt;
  } else {
    using Op = std::variant_alternative_t<I, Attributes>;
    if (Op::name == name) return Attributes{Op{}};
    return default_attributes<I + 1>(name);
  }
}

std::string shapes_text(const std::vector<Shape>& shapes) {
  std::string text;
  for (const Shape& shape : shapes) {
    if (!text.empty()) text += ",";
    text += to_string(shape);
  }
  return text;
}

bool parse_shapes(std::string_view text, std::vector<Shape>& shapes) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    Shape shape;
    if (one != "scalar" && (one == "-" || !parse_ints(one, shape))) return false;
    for (const std::int64_t extent : shape)
      if (extent < 0) return false;
    shapes.push_back(std::move(shape));
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
  return true;
}

}  // namespace

std::string to_string(const Attributes& attributes) {
  return std::visit(
      [](const auto& op) {
        using Op = std::decay_t<decltype(op)>;
        std::vector<std::string> defaults, parts;
        const Op at_default{};
        Op::fields(at_default, [&](std::string_view, const auto& value) { defaults.push_back(field_text(value)); });
        std::size_t i = 0;
        Op::fields(op, [&](std::string_view field, const auto& value) {
          std::string text = field_text(value);
          if (text != defaults[i++]) parts.push_back(fmt::format("{}={}", field, text));
        });
        return parts.empty() ? std::string(Op::name) : fmt::format("{}({})", Op::name, fmt::join(parts, ","));
      },
      attributes);
}

std::string to_string(const Signature& s) {
  return fmt::format("{}[{}]->[{}]:{}", to_string(s.attributes), shapes_text(s.inputs), shapes_text(s.outputs),
                     to_string(s.dtype));
}

Result<Signature> parse_signature(std::string_view text) {
  auto bad = [&](std::string_view why) { return fail(fmt::format("'{}' is not a kernel signature: {}", text, why)); };
  const std::size_t open = text.find('[');
  const std::size_t arrow = text.find("]->[");
  const std::size_t close = text.rfind("]:");
  if (open == std::string_view::npos || arrow == std::string_view::npos || close == std::string_view::npos ||
      arrow < open || close < arrow + 4)
    return bad("expected NAME(ATTRIBUTES)[INPUTS]->[OUTPUTS]:TYPE");

  Signature signature;
  std::string_view head = text.substr(0, open);
  const std::size_t bracket = head.find('(');
  const auto attributes = default_attributes(head.substr(0, bracket));
  if (!attributes) return bad(fmt::format("no operation is called '{}'", head.substr(0, bracket)));
  signature.attributes = *attributes;
  if (bracket != std::string_view::npos) {
    if (head.back() != ')') return bad("unbalanced brackets");
    std::string_view list = head.substr(bracket + 1, head.size() - bracket - 2);
    while (!list.empty()) {
      const std::size_t comma = list.find(',');
      const std::string_view entry = list.substr(0, comma);
      list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
      const std::size_t equals = entry.find('=');
      bool known = false, valid = false;
      std::visit(
          [&](auto& op) {
            std::decay_t<decltype(op)>::fields(op, [&](std::string_view field, auto& value) {
              if (field != entry.substr(0, equals) || equals == std::string_view::npos) return;
              known = true;
              valid = parse_field(entry.substr(equals + 1), value);
            });
          },
          signature.attributes);
      if (!known || !valid) return bad(fmt::format("cannot read the attribute '{}'", entry));
    }
  }
  if (!parse_shapes(text.substr(open + 1, arrow - open - 1), signature.inputs) ||
      !parse_shapes(text.substr(arrow + 4, close - arrow - 4), signature.outputs))
    return bad("cannot read its shapes");
  const auto dtype = parse_dtype(text.substr(close + 2));
  if (!dtype) return bad(fmt::format("no element type is called '{}'", text.substr(close + 2)));
  signature.dtype = *dtype;
  return signature;
}

std::size_t hash_value(const Signature& signature) {
  Hash hash;
  auto mix = [&](std::size_t value) { hash.add(value); };
  mix(signature.attributes.index());
  mix(static_cast<std::size_t>(signature.dtype));
  std::visit(
      [&](const auto& op) {
        std::decay_t<decltype(op)>::fields(op, [&](std::string_view, const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, Ints>)
            for (const std::int64_t v : value) mix(static_cast<std::size_t>(v));
          else if constexpr (std::is_same_v<T, double>)
            mix(std::hash<double>{}(value));
          else
            mix(static_cast<std::size_t>(value));
        });
      },
      signature.attributes);
  for (const auto* shapes : {&signature.inputs, &signature.outputs})
    for (const Shape& shape : *shapes) {
      mix(shape.size());
      for (const std::int64_t extent : shape) mix(static_cast<std::size_t>(extent));
    }
  return hash.value();
}

}  // namespace sibyl

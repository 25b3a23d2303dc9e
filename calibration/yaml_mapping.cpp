#include "calibration/yaml_mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>

namespace sibyl {

void YamlMapping::mapping(std::string of_key, YamlMapping& inner, bool required) {
  key(
      std::move(of_key), [&inner](const YAML::Node& node) { return inner.read(node); }, required);
}

void YamlMapping::counts(std::string of_key, std::vector<int>& target, bool required) {
  key(
      std::move(of_key),
      [this, &target](const YAML::Node& node) -> Result<void> {
        const auto add = [&](const YAML::Node& item) -> Result<void> {
          SIBYL_TRY(const std::string text, single_value(item));
          const auto count = parse_count(text);
          if (!count) return fail(count.error().message, where(item), count.error().hint);
          target.push_back(*count);
          return {};
        };
        target.clear();
        if (!node.IsSequence()) return add(node);
        for (const YAML::Node& item : node) SIBYL_CHECK(add(item));
        return {};
      },
      required);
}

Result<void> YamlMapping::read(const YAML::Node& node) {
  if (!node.IsMap()) return fail(fmt::format("{} must be a mapping of keys to values", name_), where(node));
  for (const auto& member : node) SIBYL_CHECK(read_member(member.first, member.second));
  for (const Entry& entry : entries_)
    if (entry.required && !entry.seen) return fail(fmt::format("{} lacks the key '{}'", name_, entry.key), where(node));
  return {};
}

std::optional<std::string> YamlMapping::given(std::string_view key) const {
  for (const Entry& entry : entries_)
    if (entry.key == key && entry.seen) return entry.where;
  return std::nullopt;
}

std::string YamlMapping::where(const YAML::Node& node) const {
  return node.Mark().is_null() ? file_ : fmt::format("{}:{}", file_, node.Mark().line + 1);
}

Result<std::string> YamlMapping::single_value(const YAML::Node& node) const {
  if (!node.IsScalar()) return fail("must be a single value", where(node));
  return node.Scalar();
}

Result<void> YamlMapping::read_member(const YAML::Node& key_node, const YAML::Node& value) {
  const std::string name = key_node.IsScalar() ? key_node.Scalar() : std::string("?");
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == name; });
  if (entry == entries_.end()) {
    std::vector<std::string> known;
    for (const Entry& e : entries_) known.push_back(e.key);
    return fail(fmt::format("{} has no key '{}'", name_, name), where(key_node),
                fmt::format("known are {}", fmt::join(known, ", ")));
  }
  if (entry->seen) return fail(fmt::format("'{}' is given twice", name), where(key_node));
  entry->seen = true;
  entry->where = where(key_node);
  return entry->read(value);
}

namespace {

Result<double> parse_number(const std::string& text) {
  std::size_t used = 0;
  double value = std::nan("");
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || text.empty() || !std::isfinite(value))
    return fail(fmt::format("'{}' is not a number", text));
  return value;
}
}  // namespace

Result<std::string> parse_text(const std::string& text) { return text; }

Result<int> parse_count(const std::string& text) {
  SIBYL_TRY(const double value, parse_number(text));
  if (value < 1 || value > 1e7 || value != std::floor(value))
    return fail(fmt::format("'{}' is not a count", text), {}, "a whole number of at least 1");
  return static_cast<int>(value);
}
Result<double> parse_factor(const std::string& text) {
  SIBYL_TRY(const double value, parse_number(text));
  if (value < 1 || value > 1e6)
    return fail(fmt::format("'{}' is not a factor from 1 to 1e6", text), {}, "1 means no slow-down");
  return value;
}
Result<double> parse_share(const std::string& text) {
  SIBYL_TRY(const double value, parse_number(text));
  if (value < 0 || value > 1) return fail(fmt::format("'{}' is not a share from 0 to 1", text));
  return value;
}
Result<bool> parse_yes_or_no(const std::string& text) {
  if (text == "true" || text == "yes") return true;
  if (text == "false" || text == "no") return false;
  return fail(fmt::format("'{}' is neither true nor false", text));
}

}  // namespace sibyl

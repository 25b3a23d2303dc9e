#include "calibration/import/host_list.h"

#include <fmt/format.h>

#include <charconv>

namespace sibyl::import {
namespace {

// Cut at commas outside of brackets.
std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i == text.size() || (text[i] == ',' && depth <= 0)) {
      items.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return items;
}

struct Range {
  long first = 0, last = 0;
  std::size_t width = 0;  // digits, leading zeros included
};

Result<Range> range_of(std::string_view text, std::string_view list, const std::string& where) {
  const std::size_t dash = text.find('-');
  const std::string_view low = text.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : text.substr(dash + 1);
  const auto number = [](std::string_view digits, long& value) {
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return problem == std::errc{} && end == digits.data() + digits.size() && value >= 0;
  };
  Range range{0, 0, low.size()};
  if (!number(low, range.first) || !number(high, range.last) || range.last < range.first)
    return fail(fmt::format("'{}' in '{}' is no range of numbers", text, list), where, "like [0-5,7] or [01-12]");
  return range;
}

// All that `text` stands for, behind `prefix`.
Result<void> expand(const std::string& prefix, std::string_view text, std::string_view list, const std::string& where,
                    std::vector<std::string>& names) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos) {
    if (text.find(']') != std::string_view::npos) return fail(fmt::format("a ']' without '[' in '{}'", list), where);
    if (names.size() >= most_names) return fail(fmt::format("'{}' is more than {} names", list, most_names), where);
    names.push_back(prefix + std::string(text));
    return {};
  }
  const std::size_t close = text.find(']', open);
  if (close == std::string_view::npos) return fail(fmt::format("a '[' without ']' in '{}'", list), where);
  for (const std::string_view item : items_of(text.substr(open + 1, close - open - 1))) {
    SIBYL_TRY(const Range range, range_of(item, list, where));
    for (long n = range.first; n <= range.last; ++n)
      SIBYL_CHECK(expand(prefix + std::string(text.substr(0, open)) + fmt::format("{:0{}}", n, range.width),
                         text.substr(close + 1), list, where, names));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> expand_host_list(std::string_view text, const std::string& where) {
  std::vector<std::string> names;
  for (const std::string_view item : items_of(text)) {
    if (item.empty()) return fail(fmt::format("'{}' has an empty name", text), where);
    SIBYL_CHECK(expand({}, item, text, where, names));
  }
  return names;
}

}  // namespace sibyl::import

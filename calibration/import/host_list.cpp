#include "calibration/import/host_list.h"

#include <fmt/format.h>

#include <algorithm>
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

// As errors quote it.
std::string_view shown(std::string_view text) { return text.substr(0, 80); }

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
    return fail(fmt::format("'{}' in '{}' is no range of numbers", shown(text), shown(list)), where,
                "like [0-5,7] or [01-12]");
  return range;
}

class Expansion {
 public:
  Expansion(std::string_view list, const std::string& where, std::size_t& made)
      : list_(list), where_(where), made_(made) {}

  // All that `text` stands for, behind `prefix`.
  Result<void> run(const std::string& prefix, std::string_view text) {
    const std::size_t open = text.find('[');
    if (prefix.size() + std::min(open, text.size()) > longest_name) return too_long();
    if (open == std::string_view::npos) {
      if (text.find(']') != std::string_view::npos)
        return fail(fmt::format("a ']' without '[' in '{}'", shown(list_)), where_);
      if (++made_ > most_names)
        return fail(fmt::format("'{}' makes the file's names more than {}", shown(list_), most_names), where_);
      names_.push_back(prefix + std::string(text));
      return {};
    }
    const std::size_t close = text.find(']', open);
    if (close == std::string_view::npos) return fail(fmt::format("a '[' without ']' in '{}'", shown(list_)), where_);
    const std::string begin = prefix + std::string(text.substr(0, open));
    for (const std::string_view item : items_of(text.substr(open + 1, close - open - 1))) {
      SIBYL_TRY(const Range range, range_of(item, list_, where_));
      if (range.width > longest_name) return too_long();
      for (long n = range.first; n <= range.last; ++n)
        SIBYL_CHECK(run(begin + fmt::format("{:0{}}", n, range.width), text.substr(close + 1)));
    }
    return {};
  }

  std::vector<std::string> take() { return std::move(names_); }

 private:
  [[nodiscard]] Result<void> too_long() const {
    return fail(fmt::format("'{}' has a name of more than {} bytes", shown(list_), longest_name), where_);
  }

  std::string_view list_;
  const std::string& where_;
  std::size_t& made_;
  std::vector<std::string> names_;
};

}  // namespace

Result<std::vector<std::string>> HostLists::expand(std::string_view text, const std::string& where) {
  Expansion expansion(text, where, made_);
  for (const std::string_view item : items_of(text)) {
    if (item.empty()) return fail(fmt::format("'{}' has an empty name", shown(text)), where);
    SIBYL_CHECK(expansion.run({}, item));
  }
  return expansion.take();
}

}  // namespace sibyl::import

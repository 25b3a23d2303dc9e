#include "oracle/validate/published/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "oracle/validate/published/row.h"

namespace sibyl::published {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace

bool is_not_stated(std::string_view cell) {
  const std::string text = lower_case(cell);
  return text.empty() || text == "n/a" || text == "na" || text == "-" || text == "not stated" || text == "unknown" ||
         text == "none stated";
}

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

std::string Cells::text(std::string_view column) const {
  const auto found = std::find(header_.begin(), header_.end(), column);
  if (found == header_.end()) return {};
  return std::string(trimmed(record_.fields[static_cast<std::size_t>(found - header_.begin())]));
}

Result<std::string> Cells::required(std::string_view column) const {
  std::string cell = text(column);
  if (cell.empty()) return fail(fmt::format("{} is empty", column), where());
  return cell;
}

Result<std::optional<double>> Cells::number(std::string_view column) const {
  const std::string cell = text(column);
  if (is_not_stated(cell)) return std::nullopt;
  double value = 0;
  const auto [end, problem] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (problem != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value))
    return fail(fmt::format("{}: '{}' is not a number", column, cell), where());
  return value;
}

Result<std::optional<std::int64_t>> Cells::integer(std::string_view column, std::int64_t least,
                                                   std::int64_t most) const {
  SIBYL_TRY(const std::optional<double> value, number(column));
  if (!value) return std::nullopt;
  if (*value != std::floor(*value) || *value < static_cast<double>(least) || *value > static_cast<double>(most))
    return fail(fmt::format("{}: {} is not an integer from {} to {}", column, text(column), least, most), where());
  return static_cast<std::int64_t>(*value);
}

std::string Cells::where() const { return fmt::format("{}:{}", file_, record_.line); }

Result<void> require_columns(const Csv& table, const std::vector<std::string_view>& columns, const std::string& file) {
  for (const std::string_view column : columns)
    if (std::find(table.header.begin(), table.header.end(), column) == table.header.end())
      return fail(fmt::format("has no column '{}'", column), file + ":1",
                  "docs/formats/published.md lists the columns");
  return {};
}

}  // namespace sibyl::published

#include "base/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sibyl {
namespace {

std::vector<std::size_t> widths(const Table& table) {
  std::vector<std::size_t> result;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = display_width(table.columns[c].title);
    for (const auto& row : table.rows) width = std::max(width, display_width(row[c].text));
    result.push_back(width);
  }
  return result;
}

std::string padded(const std::string& text, std::size_t width, Column::Align align) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return align == Column::Align::left ? text + space : space + text;
}

std::string without_trailing_space(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// RFC 4180: quoted where a separator, a quote or a line break occurs.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string markdown_field(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

}  // namespace

Table visible(const Table& table) {
  Table result{{}, std::vector<std::vector<Cell>>(table.rows.size())};
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const bool shown = !table.columns[c].title.empty() ||
                       std::ranges::any_of(table.rows, [c](const auto& row) { return !row[c].text.empty(); });
    if (!shown) continue;
    result.columns.push_back(table.columns[c]);
    for (std::size_t r = 0; r < table.rows.size(); ++r) result.rows[r].push_back(table.rows[r][c]);
  }
  return result;
}

std::string aligned_text(const Table& whole) {
  const Table table = visible(whole);
  const std::vector<std::size_t> width = widths(table);
  std::string head, rule, body;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::string_view gap = c == 0 ? "" : "  ";
    head += fmt::format("{}{}", gap, padded(table.columns[c].title, width[c], table.columns[c].align));
    rule += fmt::format("{}{}", gap, std::string(width[c], '-'));
  }
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += fmt::format("{}{}", c == 0 ? "" : "  ", padded(row[c].text, width[c], table.columns[c].align));
    body += without_trailing_space(line) + "\n";
  }
  return without_trailing_space(head) + "\n" + rule + "\n" + body;
}

std::string markdown(const Table& whole) {
  const Table table = visible(whole);
  std::string text = "|", rule = "|";
  for (const Column& column : table.columns) {
    text += fmt::format(" {} |", markdown_field(column.title));
    rule += column.align == Column::Align::left ? " --- |" : " ---: |";
  }
  text += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const Cell& cell : row) text += fmt::format(" {} |", markdown_field(cell.text));
    text += "\n";
  }
  return text;
}

std::string csv(const Table& table) {
  std::string text;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    text += fmt::format("{}{}", c == 0 ? "" : ",", csv_field(table.columns[c].key));
  text += "\n";
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      text += fmt::format("{}{}", c == 0 ? "" : ",", csv_field(row[c].value));
    text += "\n";
  }
  return text;
}

std::string plain_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : std::string(); }

std::size_t display_width(std::string_view text) {
  // Every byte but a UTF-8 continuation begins a character.
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace sibyl

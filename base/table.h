// A table as a value, and its three spellings: aligned text for people, Markdown for documents, CSV for programs.
//
// Text and Markdown show a cell's `text` ("12.3 ms") under the column's `title`; CSV shows its `value` ("0.0123", SI
// units) under the column's `key` ("step_time_s"). Output depends on nothing but the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sibyl {

struct Cell {
  std::string text;
  std::string value;

  Cell(std::string both) : text(both), value(std::move(both)) {}  // NOLINT: a word is a cell
  Cell(const char* both) : Cell(std::string(both)) {}             // NOLINT
  Cell(std::string shown, std::string stored) : text(std::move(shown)), value(std::move(stored)) {}
  bool operator==(const Cell&) const = default;
};

struct Column {
  enum class Align { left, right };
  std::string title;
  std::string key;
  Align align = Align::right;
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // each as long as `columns`
};

// Without the columns that are for programs: with no title, and no text in any row.
Table visible(const Table& table);

std::string aligned_text(const Table& table);
std::string markdown(const Table& table);
std::string csv(const Table& table);

// The shortest decimal text that reads back as the same number; empty if it is not finite.
std::string plain_number(double value);

// Characters a terminal shows for UTF-8 text (one per code point; Sibyl prints no wide or combining ones).
std::size_t display_width(std::string_view text);

}  // namespace sibyl

// Comma-separated values as RFC 4180 describes them, and as spreadsheets write them: quoted fields may hold commas, quotes
// (doubled) and line ends; records end in CR LF or LF; a byte-order mark is skipped, and so are empty lines.
//
// Errors name file:line: a quote that is never closed, text after a closing quote, a quote inside an unquoted field, a
// record with another number of fields than the header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sibyl::published {

struct CsvRecord {
  int line = 0;  // where it begins
  std::vector<std::string> fields;
};

struct Csv {
  std::vector<std::string> header;
  std::vector<CsvRecord> records;  // each with as many fields as the header
};

// `file` names the text in errors. A text without a header is one.
Result<Csv> parse_csv(std::string_view text, const std::string& file);

}  // namespace sibyl::published

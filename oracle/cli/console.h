// Where words come from and go to: standard streams, files, the terminal's abilities.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/table.h"
#include "oracle/cli/arguments.h"
#include "oracle/report/report.h"

namespace sibyl::cli {

// Talk, on standard error. Data goes to standard output by print() of base/files.h.
void say(const std::string& text);

// The whole of a file; "-" is standard input.
Result<std::string> read_text(const std::string& path);
// Replaces the file in one move, so that a reader never sees half of it. An existing one only with `overwrite`. "-" is
// standard output.
Result<void> write_file(const std::string& path, const std::string& bytes, bool overwrite);

// --color, NO_COLOR, and whether standard output is a terminal.
TextStyle text_style(const Arguments& arguments);

enum class OutputFormat { text, json, csv, markdown };
std::vector<Option> table_options();  // --csv and --markdown
// Of --json, --csv and --markdown at most one may be given.
Result<OutputFormat> output_format(const Arguments& arguments);
// A table that is all there is to say, in any format; `json` is its own.
Result<void> print_table(const Table& table, const std::string& json, OutputFormat format);

}  // namespace sibyl::cli

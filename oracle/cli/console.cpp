#include "oracle/cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace sibyl::cli {

void say(const std::string& text) { fmt::print(stderr, "{}\n", text); }

Result<std::string> read_text(const std::string& path) { return path == "-" ? read_standard_input() : read_file(path); }

Result<void> write_file(const std::string& path, const std::string& bytes, bool overwrite) {
  if (path == "-") return print(bytes);
  std::error_code error;
  if (!overwrite && std::filesystem::is_regular_file(path, error))
    return fail("exists already", path, "--force replaces it");
  return replace_file(path, bytes);
}

TextStyle text_style(const Arguments& arguments) {
  const std::string when = arguments.text("--color").value_or("auto");
  if (when != "auto") return {when == "always"};
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool shows = terminal != nullptr && std::string(terminal) != "dumb";
  return {isatty(STDOUT_FILENO) != 0 && shows && (refused == nullptr || *refused == '\0')};
}

std::vector<Option> table_options() {
  return {{.name = "--csv", .help = "print CSV, in SI units"},
          {.name = "--markdown", .help = "print a Markdown table"}};
}

Result<OutputFormat> output_format(const Arguments& arguments) {
  const bool json = arguments.has("--json"), csv = arguments.has("--csv"), markdown = arguments.has("--markdown");
  if (static_cast<int>(json) + static_cast<int>(csv) + static_cast<int>(markdown) > 1)
    return fail(ErrorCode::usage, "only one of --json, --csv and --markdown can be printed");
  return json ? OutputFormat::json : csv ? OutputFormat::csv : markdown ? OutputFormat::markdown : OutputFormat::text;
}

Result<void> print_table(const Table& table, const std::string& json, OutputFormat format) {
  switch (format) {
    case OutputFormat::json: return print(json);
    case OutputFormat::csv: return print(csv(table));
    case OutputFormat::markdown: return print(markdown(table));
    case OutputFormat::text: break;
  }
  return print(aligned_text(table));
}

}  // namespace sibyl::cli

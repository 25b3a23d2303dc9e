#include "oracle/cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

namespace sibyl::cli {
namespace {

std::string reason() { return std::strerror(errno); }

}  // namespace

Result<void> print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
  return fail(fmt::format("cannot write: {}", reason()), "standard output");
}

void say(const std::string& text) { fmt::print(stderr, "{}\n", text); }

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return std::string{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return fail("is a folder, not a file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(fmt::format("cannot open: {}", reason()), path);
  return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Result<void> write_file(const std::string& path, const std::string& bytes, bool overwrite) {
  if (path == "-") return print(bytes);
  std::error_code error;
  if (!overwrite && std::filesystem::exists(path, error)) return fail("exists already", path, "--force replaces it");
  const std::string unfinished = fmt::format("{}.{}.part", path, getpid());
  {
    std::ofstream file(unfinished, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) {
      const std::string why = reason();
      std::filesystem::remove(unfinished, error);
      return fail(fmt::format("cannot write: {}", why), path);
    }
  }
  std::filesystem::rename(unfinished, path, error);
  if (!error) return {};
  const std::string why = error.message();
  std::filesystem::remove(unfinished, error);
  return fail(fmt::format("cannot write: {}", why), path);
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

}  // namespace sibyl::cli

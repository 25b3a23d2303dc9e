// The command line as values: what a verb accepts (Command), and what a user gave it (Arguments).
//
// One Command describes a verb wholly; parsing, `--help`, shell completion and the manual page are all made from it.
// Words are `--name value` or `--name=value`; `-x` where an option has a letter; `--` ends the options; a lone `-` is
// an operand. Every mistake is an Error of code usage that names the option and, where a known one is near, suggests
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace sibyl::cli {

struct Option {
  std::string name;                       // "--batch"
  std::string value = {};                 // "N[/device]" as help shows it; empty: a flag
  std::string help = {};                  // one sentence, without full stop
  std::string fallback = {};              // what holds without it, as text; empty: nothing
  std::vector<std::string> choices = {};  // the only accepted values, when not empty
  char letter = 0;                        // -o
  std::string alias = {};                 // another name for it
  bool repeatable = false;
};

struct Example {
  std::string command;
  std::string says;
};

struct Command {
  std::string name;      // "predict"
  std::string program;   // "sibyl predict", as a user types it
  std::string summary;   // one line
  std::string operands;  // "MODEL", as help shows it
  std::vector<Example> examples;
  std::vector<Option> options;  // --help is understood besides
  std::size_t least_operands = 0;
  std::size_t most_operands = 0;
  std::string notes;  // paragraphs at the end of the help
};

class Arguments {
 public:
  // `words` are those after the verb. The command is copied.
  static Result<Arguments> parse(Command command, std::span<const std::string> words);

  [[nodiscard]] bool help() const { return help_; }
  [[nodiscard]] bool has(std::string_view option) const;
  [[nodiscard]] const std::vector<std::string>& operands() const { return operands_; }

  // The last value given, or else the option's fallback, or else nothing.
  [[nodiscard]] std::optional<std::string> text(std::string_view option) const;
  [[nodiscard]] std::vector<std::string> all(std::string_view option) const;

  // Typed values; nothing if neither given nor defaulted; an Error that names the option if it cannot be read.
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view option, std::int64_t least,
                                                            std::int64_t most = INT64_MAX) const;
  [[nodiscard]] Result<std::optional<double>> number(std::string_view option) const;
  [[nodiscard]] Result<std::optional<Bytes>> bytes(std::string_view option) const;
  [[nodiscard]] Result<std::optional<Seconds>> seconds(std::string_view option) const;

 private:
  struct Given {
    std::size_t option;
    std::string value;
  };
  explicit Arguments(Command command) : command_(std::move(command)) {}
  Result<void> take_option(std::string_view word, std::span<const std::string> rest, std::size_t& used);

  Command command_;
  std::vector<Given> given_;
  std::vector<std::string> operands_;
  bool help_ = false;
};

// `--help`: examples first, then the options.
std::string help_text(const Command& command);

// The candidate a typist may have meant, if one is near enough (a few letters wrong, missing, or swapped).
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// An integer from `least` to `most` in plain decimal digits; `what` begins the message.
Result<std::int64_t> parse_integer(std::string_view text, std::string_view what, std::int64_t least,
                                   std::int64_t most = INT64_MAX);

}  // namespace sibyl::cli

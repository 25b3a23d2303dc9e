#include "oracle/cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/quantity.h"

namespace sibyl::cli {
namespace {

std::string see_help(const Command& command) { return fmt::format("`{} --help` shows what it takes", command.program); }

Failure usage(const Command& command, std::string message, const std::optional<std::string>& meant = std::nullopt) {
  return fail(ErrorCode::usage, std::move(message), {},
              meant ? fmt::format("did you mean {}?", *meant) : see_help(command));
}

std::vector<std::string> option_names(const Command& command) {
  std::vector<std::string> names;
  for (const Option& option : command.options) {
    names.push_back(option.name);
    if (!option.alias.empty()) names.push_back(option.alias);
  }
  names.emplace_back("--help");
  return names;
}

std::optional<std::size_t> find_option(const Command& command, std::string_view name) {
  const auto found = std::ranges::find_if(command.options, [&](const Option& option) {
    return option.name == name || (!option.alias.empty() && option.alias == name) ||
           (option.letter != 0 && name.size() == 2 && name[0] == '-' && name[1] == option.letter);
  });
  if (found == command.options.end()) return std::nullopt;
  return static_cast<std::size_t>(found - command.options.begin());
}

// Edits between two words where a swap of neighbours counts once (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::string left_column(const Option& option) {
  std::string text = option.letter != 0 ? fmt::format("-{}, {}", option.letter, option.name) : "    " + option.name;
  if (!option.value.empty()) text += " " + option.value;
  return text;
}

std::string right_column(const Option& option) {
  std::string text = option.help;
  if (!option.choices.empty()) text += fmt::format(": {}", fmt::join(option.choices, ", "));
  if (!option.fallback.empty()) text += fmt::format(" [{}]", option.fallback);
  if (option.repeatable) text += "; may be repeated";
  if (!option.alias.empty()) text += fmt::format("; also {}", option.alias);
  return text;
}

}  // namespace

Result<Arguments> Arguments::parse(Command command, std::span<const std::string> words) {
  Arguments arguments(std::move(command));
  bool options_end = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (options_end || word == "-" || !word.starts_with('-')) {
      arguments.operands_.push_back(word);
    } else if (word == "--") {
      options_end = true;
    } else if (word == "--help" || word == "-h") {
      arguments.help_ = true;
    } else {
      std::size_t used = 0;
      SIBYL_CHECK(arguments.take_option(word, words.subspan(i + 1), used));
      i += used;
    }
  }
  if (arguments.help_) return arguments;
  const Command& c = arguments.command_;
  if (arguments.operands_.size() < c.least_operands)
    return usage(c, fmt::format("`{}` needs {}", c.program, c.operands));
  if (arguments.operands_.size() > c.most_operands)
    return usage(
        c, fmt::format("`{}` does not know what to do with '{}'", c.program, arguments.operands_[c.most_operands]));
  return arguments;
}

Result<void> Arguments::take_option(std::string_view word, std::span<const std::string> rest, std::size_t& used) {
  const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
  const std::string_view name = word.substr(0, equals);
  const auto index = find_option(command_, name);
  if (!index)
    return usage(command_, fmt::format("`{}` has no option {}", command_.program, name),
                 nearest(name, option_names(command_)));
  const Option& option = command_.options[*index];
  std::string value;
  if (option.value.empty()) {
    if (equals != std::string_view::npos) return usage(command_, fmt::format("{} takes no value", option.name));
  } else if (equals != std::string_view::npos) {
    value = word.substr(equals + 1);
  } else if (!rest.empty() && !rest.front().starts_with("--")) {
    value = rest.front();
    used = 1;
  } else {
    return usage(command_, fmt::format("{} needs a value: {}", option.name, option.value));
  }
  if (!option.choices.empty() && std::ranges::find(option.choices, value) == option.choices.end())
    return fail(ErrorCode::usage, fmt::format("{} cannot be '{}'", option.name, value), {},
                fmt::format("choose from {}", fmt::join(option.choices, ", ")));
  const bool again = std::ranges::any_of(given_, [&](const Given& g) { return g.option == *index; });
  if (again && !option.repeatable) return usage(command_, fmt::format("{} is given twice", option.name));
  given_.push_back({*index, std::move(value)});
  return {};
}

bool Arguments::has(std::string_view option) const {
  const auto index = find_option(command_, option);
  return index && std::ranges::any_of(given_, [&](const Given& g) { return g.option == *index; });
}

std::optional<std::string> Arguments::text(std::string_view option) const {
  const auto index = find_option(command_, option);
  if (!index) return std::nullopt;
  for (auto given = given_.rbegin(); given != given_.rend(); ++given)
    if (given->option == *index) return given->value;
  const std::string& fallback = command_.options[*index].fallback;
  return fallback.empty() ? std::nullopt : std::optional(fallback);
}

std::vector<std::string> Arguments::all(std::string_view option) const {
  std::vector<std::string> values;
  const auto index = find_option(command_, option);
  for (const Given& given : given_)
    if (index && given.option == *index) values.push_back(given.value);
  return values;
}

namespace {

// Turns any Error of a reader into one of code usage that begins with the option's name.
template <class T>
Result<std::optional<T>> named(std::string_view option, Result<T> value) {
  if (value) return std::optional<T>(*value);
  Error error = std::move(value).error();
  error.code = ErrorCode::usage;
  error.where = option;
  return Failure(std::move(error));
}

Result<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return fail(fmt::format("'{}' is not a number", text));
  return value;
}

}  // namespace

Result<std::optional<std::int64_t>> Arguments::integer(std::string_view option, std::int64_t least,
                                                       std::int64_t most) const {
  const auto given = text(option);
  if (!given) return std::optional<std::int64_t>();
  SIBYL_TRY(const std::int64_t value, parse_integer(*given, option, least, most));
  return std::optional(value);
}

Result<std::optional<double>> Arguments::number(std::string_view option) const {
  const auto given = text(option);
  if (!given) return std::optional<double>();
  return named(option, parse_number(*given));
}

Result<std::optional<Bytes>> Arguments::bytes(std::string_view option) const {
  const auto given = text(option);
  if (!given) return std::optional<Bytes>();
  return named(option, parse_bytes(*given));
}

Result<std::optional<Seconds>> Arguments::seconds(std::string_view option) const {
  const auto given = text(option);
  if (!given) return std::optional<Seconds>();
  return named(option, parse_seconds(*given));
}

Result<std::int64_t> parse_integer(std::string_view text, std::string_view what, std::int64_t least,
                                   std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size();
  const bool beyond = status == std::errc::result_out_of_range;
  if (whole && (beyond ? !text.starts_with('-') : status == std::errc{} && value > most))
    return fail(ErrorCode::usage, fmt::format("{}: '{}' is more than {}", what, text, most));
  if (!whole || status != std::errc{} || value < least)
    return fail(ErrorCode::usage, fmt::format("{}: '{}' is not an integer of at least {}", what, text, least));
  return value;
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t d = distance(word, candidate);
    if (d < least) least = d, best = candidate;
  }
  if (best || word.size() < 3) return best;
  for (const std::string& candidate : candidates)
    if (candidate.starts_with(word)) return candidate;
  return best;
}

std::string help_text(const Command& command) {
  std::string text = "Examples:\n";
  for (const Example& example : command.examples)
    text += fmt::format("  {}\n      {}\n", example.command, example.says);
  std::string summary = command.summary;
  if (!summary.empty() && summary[0] >= 'a' && summary[0] <= 'z')
    summary[0] = static_cast<char>(summary[0] - 'a' + 'A');
  text += fmt::format("\nUsage: {}{}{} [OPTIONS]\n{}.\n", command.program, command.operands.empty() ? "" : " ",
                      command.operands, summary);
  text += "\nOptions:\n";
  std::size_t width = 0;
  for (const Option& option : command.options) width = std::max(width, left_column(option).size());
  for (const Option& option : command.options)
    text += fmt::format("  {:<{}}  {}\n", left_column(option), width, right_column(option));
  text += fmt::format("  {:<{}}  {}\n", "-h, --help", width, "show this");
  if (!command.notes.empty()) text += "\n" + command.notes + "\n";
  return text;
}

}  // namespace sibyl::cli

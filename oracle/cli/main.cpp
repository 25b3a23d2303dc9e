// sibyl VERB …: finds the verb, runs it, and turns its result into an exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "oracle/cli/console.h"
#include "oracle/cli/external.h"
#include "oracle/cli/verbs.h"

namespace sibyl::cli {
namespace {

int report(const Error& error) {
  say(to_string(error));
  return exit_code(error.code);
}

int finish(const Result<int>& result) { return result ? *result : report(result.error()); }

int print_and_exit(const std::string& text) {
  const auto printed = print(text);
  return printed ? 0 : report(printed.error());
}

const Verb* find_verb(const std::string& name) {
  for (const Verb& verb : all_verbs())
    if (verb.command.name == name) return &verb;
  return nullptr;
}

int unknown_verb(const std::string& word) {
  std::vector<std::string> names;
  for (const Verb& verb : all_verbs()) names.push_back(verb.command.name);
  const auto meant = nearest(word, names);
  return report({ErrorCode::usage,
                 fmt::format("there is no verb '{}'", word),
                 {},
                 meant ? fmt::format("did you mean `sibyl {}`?", *meant) : "`sibyl --help` lists them"});
}

int run_verb(const Verb& verb, const std::vector<std::string>& words) {
  if (!verb.program.empty())
    return report(replace_process(verb.command.name == "calibrate" ? calibrator_for(words) : verb.program, words));
  const auto arguments = Arguments::parse(verb.command, words);
  if (!arguments) return report(arguments.error());
  if (arguments->help()) return print_and_exit(help_text(verb.command));
  return finish(verb.run(*arguments));
}

int run(std::vector<std::string> words) {
  if (words.empty()) {
    std::fputs(general_help().c_str(), stderr);
    return exit_code(ErrorCode::usage);
  }
  std::string word = words.front();
  words.erase(words.begin());
  if (word == "help" && !words.empty()) {
    word = words.front();
    words = {"--help"};
  }
  if (word == "--help" || word == "-h" || word == "help") return print_and_exit(general_help());
  if (word == "--version") return print_and_exit("sibyl " SIBYL_VERSION "\n");
  if (word == "completion") return print_and_exit(bash_completion());
  if (word == "manual") return print_and_exit(manual_page());
  const Verb* verb = find_verb(word);
  return verb == nullptr ? unknown_verb(word) : run_verb(*verb, words);
}

}  // namespace
}  // namespace sibyl::cli

int main(int count, char** words) {
  // Nothing needs tidying: files are written whole or not at all.
  std::signal(SIGINT, [](int) { _exit(130); });
  try {
    return sibyl::cli::run({words + (count > 0 ? 1 : 0), words + count});
  } catch (const std::exception& bug) {
    fmt::print(stderr, "sibyl: this is a bug in Sibyl: {}\n", bug.what());
    return 70;
  }
}

#include "gui/app/text.h"

#include <QCoreApplication>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "oracle/cli/study.h"

namespace sibyl::gui {

QString errorText(const Error& error) {
  QString all = text(error.where.empty() ? error.message : error.where + ": " + error.message);
  if (!error.hint.empty()) all += "\n" + text(error.hint);
  return all;
}

bool concernsStrategy(const Error& error) {
  const std::string all = error.where + " " + error.message;
  return std::ranges::any_of(
      std::vector<std::string>{"--parallel", "--split-until", "--order", "--stages", "--schedule", "--micro-batches",
                               "--zero", "--reduce-each", "--backward-prefetch", "--offload", "--recompute",
                               "--compress", "devices"},
      [&](const std::string& word) { return all.find(word) != std::string::npos; });
}

QString tip(const cli::Option& option) {
  QString all = text(option.help);
  if (!all.isEmpty()) all[0] = all[0].toUpper();
  if (!option.fallback.empty())
    all += "\n" + QCoreApplication::translate("tip", "Unless given: %1").arg(text(option.fallback));
  return all + "\n" +
         QCoreApplication::translate("tip", "Command line: %1 %2").arg(text(option.name), text(option.value));
}

const cli::Option& predictOption(std::string_view name) {
  static const std::vector<cli::Option> options = cli::prediction_options();
  const auto found = std::ranges::find(options, name, &cli::Option::name);
  if (found == options.end()) throw std::logic_error("no such option: " + std::string(name));
  return *found;
}

}  // namespace sibyl::gui

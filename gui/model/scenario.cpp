#include "gui/model/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/shell.h"
#include "oracle/cli/options.h"
#include "oracle/search/space.h"

namespace sibyl::gui {
namespace {

auto is_of(const std::string& key) {
  return [start = key + "="](const std::string& change) { return change.starts_with(start); };
}

}  // namespace

std::optional<std::string> Scenario::option(const std::string& option_name) const {
  const auto found = options.find(option_name);
  if (found == options.end() || found->second.empty()) return std::nullopt;
  return found->second.back();
}

void Scenario::set(const std::string& option_name, const std::string& value) { options[option_name] = {value}; }

void Scenario::clear(const std::string& option_name) { options.erase(option_name); }

std::optional<std::string> Scenario::change(const std::string& key) const {
  const auto found = std::ranges::find_if(changes, is_of(key));
  if (found == changes.end()) return std::nullopt;
  return found->substr(key.size() + 1);
}

void Scenario::set_change(const std::string& key, const std::string& value) {
  const auto place = std::ranges::find_if(changes, is_of(key));
  if (value.empty())
    std::erase_if(changes, is_of(key));
  else if (place != changes.end())
    *place = key + "=" + value;
  else
    changes.push_back(key + "=" + value);
}

std::vector<std::string> words(const Scenario& scenario) {
  std::vector<std::string> all;
  if (!scenario.cluster.empty()) all.push_back("--cluster=" + scenario.cluster);
  for (const auto& [name, values] : scenario.options)
    for (const std::string& value : values) all.push_back(value.empty() ? name : name + "=" + value);
  for (const std::string& change : scenario.changes) all.push_back("--set=" + change);
  all.emplace_back("--");
  all.push_back(scenario.model);
  return all;
}

std::string command_line(const Scenario& scenario) {
  std::string text = "sibyl predict";
  for (const std::string& word : words(scenario)) text += " " + shell_word(word);
  return text;
}

// In the words that a search reports it by, so that both know the same options.
Scenario with_strategy(Scenario scenario, const Strategy& strategy) {
  for (const char* name : {"--parallel", "--split-until", "--micro-batches", "--schedule", "--stages", "--zero",
                           "--reduce-each", "--backward-prefetch", "--recompute", "--order", "--bucket", "--no-overlap",
                           "--compress", "--offload", "--context-exchange", "--overlap-tensor"})
    scenario.clear(name);
  scenario.set("--devices", fmt::format("{}", strategy.devices()));
  std::istringstream said(strategy_words(strategy));
  std::string name;
  for (std::string word; said >> word;) {
    const bool option = word.starts_with("--");
    if (option) name = word;
    scenario.set(name, option ? "" : word);
  }
  const auto batch = cli::parse_batch(scenario.option("--batch").value_or("32/device"));
  if (!batch || batch->global(strategy.devices()) != strategy.global_batch)
    scenario.set("--batch", fmt::format("{}", strategy.global_batch));
  return scenario;
}

}  // namespace sibyl::gui

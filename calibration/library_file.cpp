#include "calibration/library_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "base/quantity.h"
#include "calibration/yaml_mapping.h"
#include "netmodel/collective/algorithms.h"

namespace sibyl {
namespace {

constexpr std::size_t most_rules = 1000;

Result<ChoiceRule> read_rule(const YAML::Node& node, const std::string& file) {
  YamlMapping m(file, "a rule");
  ChoiceRule rule;
  Bytes whole, part;
  m.scalar("collective", rule.collective, parse_collective, true);
  m.scalar("ranks", rule.ranks, parse_count);
  m.scalar("bytes", whole, parse_bytes);
  m.scalar("bytes_each", part, parse_bytes);
  m.scalar("algorithm", rule.algorithm, parse_algorithm, true);
  SIBYL_CHECK(m.read(node));
  if (m.given("bytes") && m.given("bytes_each"))
    return fail("'bytes' and 'bytes_each' both say how long", m.where(node), "give one of them");
  if (!collective::runs(rule.collective, rule.algorithm))
    return fail(fmt::format("{} does not offer {}", to_string(rule.algorithm), to_string(rule.collective)),
                m.where(node));
  if (m.given("bytes_each")) rule.of = ChoiceRule::Of::part;
  constexpr double exact = 1e18;  // whole numbers that are none to speak of beyond
  if (m.given("bytes") || m.given("bytes_each"))
    rule.bytes = static_cast<std::int64_t>(std::min(exact, std::max(whole, part).value()));
  return rule;
}

}  // namespace

Result<LibraryChoice> read_library(const YAML::Node& node, const std::string& file) {
  const YamlMapping m(file, "library");
  LibraryChoice choice;
  if (!node.IsSequence()) {
    SIBYL_TRY(const std::string name, m.single_value(node));
    const auto library = parse_library(name);
    if (!library)
      return fail(library.error().message, m.where(node), library.error().hint + ", or a list of rules");
    choice.library = *library;
    return choice;
  }
  choice.library = Library::table;
  if (node.size() > most_rules) return fail(fmt::format("at most {} rules", most_rules), m.where(node));
  for (const YAML::Node& rule : node) {
    SIBYL_TRY(ChoiceRule read, read_rule(rule, file));
    choice.table.push_back(read);
  }
  return choice;
}

std::string library_text(const LibraryChoice& choice) {
  if (choice.library != Library::table) return fmt::format("library: {}\n", to_string(choice.library));
  if (choice.table.empty()) return "library: []\n";
  std::string text = "library:\n";
  for (const ChoiceRule& rule : choice.table) {
    text += fmt::format("  - {{collective: {}", to_string(rule.collective));
    if (rule.ranks != ChoiceRule::any_ranks) text += fmt::format(", ranks: {}", rule.ranks);
    if (rule.bytes != ChoiceRule::any_size)
      text += fmt::format(", {}: {}", rule.of == ChoiceRule::Of::part ? "bytes_each" : "bytes", rule.bytes);
    text += fmt::format(", algorithm: {}}}\n", to_string(rule.algorithm));
  }
  return text;
}

}  // namespace sibyl

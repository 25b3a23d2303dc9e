#include "netmodel/collective/choice/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace sibyl {
namespace {

constexpr std::array<std::pair<Library, std::string_view>, 7> library_names{{{Library::automatic, "automatic"},
                                                                             {Library::sibyl, "sibyl"},
                                                                             {Library::nccl, "nccl"},
                                                                             {Library::open_mpi, "open mpi"},
                                                                             {Library::mpich, "mpich"},
                                                                             {Library::gloo, "gloo"},
                                                                             {Library::table, "table"}}};

}  // namespace

std::string_view to_string(Library library) {
  for (const auto& [known, name] : library_names)
    if (known == library) return name;
  return "unknown";
}

Result<Library> parse_library(std::string_view text) {
  for (const auto& [library, name] : library_names)
    if (name == text && library != Library::table) return library;
  return fail(fmt::format("unknown library '{}'", text), {}, "automatic, sibyl, nccl, open mpi, mpich or gloo");
}

}  // namespace sibyl

namespace sibyl::collective {

Rules rules_of(Library library) {
  switch (library) {
    case Library::sibyl: return sibyl_rules();
    case Library::open_mpi: return open_mpi_rules();
    case Library::mpich: return mpich_rules();
    case Library::gloo: return gloo_rules();
    case Library::automatic:
    case Library::nccl:
    case Library::table: break;
  }
  return {};
}

bool concerns(const ChoiceRule& rule, Collective collective, int ranks) {
  return rule.collective == collective && ranks <= rule.ranks &&
         (!rule.only_powers_of_two || std::has_single_bit(static_cast<unsigned>(ranks)));
}

std::int64_t holds_up_to(const ChoiceRule& rule, int ranks) {
  if (rule.of == ChoiceRule::Of::buffer || rule.bytes > ChoiceRule::any_size / ranks) return rule.bytes;
  return rule.bytes * ranks;
}

Algorithm choose(Rules rules, Collective collective, std::int64_t bytes, int ranks) {
  const auto fits = [&](const ChoiceRule& rule) {
    return concerns(rule, collective, ranks) && bytes <= holds_up_to(rule, ranks);
  };
  const auto first = std::ranges::find_if(rules, fits);
  return first == rules.end() ? Algorithm::automatic : first->algorithm;
}

}  // namespace sibyl::collective

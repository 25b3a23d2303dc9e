// The rules by which libraries choose (netmodel/library.h), one library a file: to add one, its file, a line here and one
// in rules.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "netmodel/library.h"

namespace sibyl::collective {

using Rules = std::span<const ChoiceRule>;

Rules sibyl_rules();
Rules open_mpi_rules();
Rules mpich_rules();
Rules gloo_rules();
// None of those that have none: automatic, nccl, and table, whose rules are the user's.
Rules rules_of(Library library);

inline constexpr std::int64_t kib = 1024;
constexpr ChoiceRule of_all(Collective collective, int ranks, std::int64_t bytes, Algorithm algorithm) {
  return {collective, ranks, bytes, algorithm, ChoiceRule::Of::buffer, false};
}
constexpr ChoiceRule of_parts(Collective collective, int ranks, std::int64_t bytes, Algorithm algorithm) {
  return {collective, ranks, bytes, algorithm, ChoiceRule::Of::part, false};
}

// The first rule that fits; automatic where none does.
Algorithm choose(Rules rules, Collective collective, std::int64_t bytes, int ranks);

// The largest size at which a rule may hold for so many ranks; ChoiceRule::any_size: for all.
std::int64_t holds_up_to(const ChoiceRule& rule, int ranks);
bool concerns(const ChoiceRule& rule, Collective collective, int ranks);

}  // namespace sibyl::collective

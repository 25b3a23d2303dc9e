// Are strategies put in the right order? What a user chooses by is not how long a step takes but which one is shortest.
//
// Cases that train the same work by different strategies are compared two by two. Two runs differ where their medians
// are farther apart than twice the standard error of the difference: of a median that is 1.25 spread / sqrt(steps), and
// drift / sqrt(rounds), where runs at different times drift. Pairs that do not differ say nothing.
//
// A prediction tells two strategies apart as a search does (told_apart() in oracle/step_error.h); others it calls
// equal, and puts them in an order that it does not vouch for.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "oracle/validate/validation.h"

namespace sibyl {

struct Ranking {
  std::string work;
  std::vector<std::string> measured, predicted;  // strategies, the fastest first
  int pairs = 0;                                 // that differ
  int right = 0;                                 // of these, those predicted in their order
  int told = 0, told_right = 0;                  // of these, those told apart; and of those again
  std::vector<std::string> wrong;                // "data=2 before tensor=2": predicted so, measured the other way round
};

// One for each work that several cases train, in order of the cases.
std::vector<Ranking> rankings(const std::vector<Validated>& cases);

Table to_table(const std::vector<Ranking>& rankings);
std::string summary_sentence(const std::vector<Ranking>& rankings);

}  // namespace sibyl

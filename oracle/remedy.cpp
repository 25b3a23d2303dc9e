#include "oracle/remedy.h"

namespace sibyl {

std::string those_that_suit(std::initializer_list<Remedy> remedies) {
  std::string text;
  for (const Remedy& remedy : remedies)
    if (remedy.suits) text.append(text.empty() ? "" : "; ").append(remedy.words);
  return text;
}

}  // namespace sibyl

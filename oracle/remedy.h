// What would relieve a limit or a bottleneck, in words: another setting, another machine, another model.
#pragma once

#include <initializer_list>
#include <string>

namespace sibyl {

struct Remedy {
  std::string words;
  bool suits = true;  // this plan, which does not do it yet, its model and its device
};

// With "; " between them.
std::string those_that_suit(std::initializer_list<Remedy> remedies);

}  // namespace sibyl

// The table that CMake generates (embed.cmake): every shipped file and its text.
#pragma once

#include <span>
#include <string_view>

#include "calibration/shipped.h"

namespace sibyl::shipped {

struct File {
  Kind kind;
  std::string_view name;
  std::string_view text;
};

std::span<const File> files();  // sorted by kind, then name

}  // namespace sibyl::shipped

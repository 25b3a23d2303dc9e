// Slurm's lists of names: "dev[0-5,7],login1", "rack[1-2]-n[01-12]". Numbers keep their leading zeros.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sibyl::import {

inline constexpr std::size_t most_names = 1 << 17;

// `where` begins errors. More than most_names is one.
Result<std::vector<std::string>> expand_host_list(std::string_view text, const std::string& where);

}  // namespace sibyl::import

// Slurm's lists of names: "dev[0-5,7],login1", "rack[1-2]-n[01-12]". Numbers keep their leading zeros.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sibyl::import {

inline constexpr std::size_t most_names = 1 << 16;  // in a file
inline constexpr std::size_t longest_name = 255;    // bytes; a host's name on the Internet has 253 (RFC 1035)

// What the lists of one file stand for. A short list can be very many names, so all the file's are counted together.
class HostLists {
 public:
  // `where` begins errors. A name of more than longest_name bytes is one, and more than most_names so far.
  Result<std::vector<std::string>> expand(std::string_view text, const std::string& where);

 private:
  std::size_t made_ = 0;
};

}  // namespace sibyl::import

// Which reader a file is for: told from its text, for names of files say little.
#include <array>

#include "calibration/import/part.h"

namespace sibyl::import {
namespace {

// The first word of the first line that is neither empty nor a comment.
std::string_view first_word(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos || line[begin] == '#' || line.substr(begin).starts_with("---")) continue;
    line.remove_prefix(begin);
    return line.substr(0, line.find_first_of(" \t\r=:"));
  }
  return {};
}

bool is_slurm_key(std::string_view word) {
  constexpr std::array<std::string_view, 3> keys{"switchname", "blockname", "blocksizes"};
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view key : keys)
    if (lower == key) return true;
  return false;
}

}  // namespace

Result<Part> read_part(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::string_view word = first_word(text);
  if (word.starts_with("<"))
    return text.find("<system") < text.find("<topology") ? read_nccl(text, file) : read_hwloc(text, file);
  if (is_slurm_key(word)) return read_slurm_conf(text, file);
  if (word == "-") return read_slurm_yaml(text, file);
  if (word == "topology" || word == "npus_count" || word == "bandwidth" || word == "latency")
    return read_astra_sim(text, file);
  return fail(
      "is none of the known formats", file,
      "an NCCL topology (NCCL_TOPO_DUMP_FILE), hwloc's XML (lstopo FILE.xml), Slurm's topology.conf or topology.yaml, "
      "or a network of ASTRA-sim");
}

}  // namespace sibyl::import

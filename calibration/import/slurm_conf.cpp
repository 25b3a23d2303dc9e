// Slurm's topology.conf: a line for each switch,
//   SwitchName=s0 Nodes=dev[0-5]
//   SwitchName=s2 Switches=s[0-1] LinkSpeed=…      (LinkSpeed is free text that Slurm ignores, and so is it here)
// or for each block (BlockName=b1 Nodes=…), which then hang below one switch. Names of keys in any case; '#' begins a
// comment, '\' at its end joins a line with the next.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "calibration/import/host_list.h"
#include "calibration/import/part.h"

namespace sibyl::import {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

struct Line {
  std::string text;
  int number = 0;  // of its first part
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  bool joined = false;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = line.substr(0, line.find('#'));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    const bool goes_on = !line.empty() && line.back() == '\\';
    if (goes_on) line.remove_suffix(1);
    if (joined)
      lines.back().text += line;
    else
      lines.push_back({std::string(line), number});
    joined = goes_on;
  }
  return lines;
}

// As Slurm reads it: "SwitchName = s0" and Nodes="dev[0-5]" are SwitchName=s0 and Nodes=dev[0-5].
std::string without_ornament(const std::string& line) {
  std::string result;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') continue;
    const bool space = line[i] == ' ' || line[i] == '\t';
    const std::size_t next = line.find_first_not_of(" \t", i);
    if (space && ((next != std::string::npos && line[next] == '=') || (!result.empty() && result.back() == '=')))
      continue;
    result += line[i];
  }
  return result;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

struct Entry {
  SwitchTree::Switch one;
  bool block = false;
};

Result<Entry> read_entry(const std::vector<std::string_view>& words, HostLists& lists, const std::string& where) {
  Entry entry;
  entry.one.where = where;
  std::set<std::string> given;
  for (const std::string_view word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = lower(word.substr(0, equals));
    if (equals == std::string_view::npos || equals + 1 == word.size())
      return fail(fmt::format("'{}' is not KEY=VALUE", word), where);
    if (!given.insert(key).second) return fail(fmt::format("'{}' is given twice", word.substr(0, equals)), where);
    const std::string_view value = word.substr(equals + 1);
    if (key == "switchname" || key == "blockname") {
      entry.one.name = value;
      entry.block = key == "blockname";
    } else if (key == "nodes") {
      SIBYL_TRY(entry.one.nodes, lists.expand(value, where));
    } else if (key == "switches") {
      SIBYL_TRY(entry.one.switches, lists.expand(value, where));
    } else if (key != "linkspeed" && key != "blocksizes") {
      return fail(fmt::format("unknown key '{}'", word.substr(0, equals)), where,
                  "SwitchName, Switches, Nodes, LinkSpeed, BlockName, BlockSizes");
    }
  }
  return entry;
}

}  // namespace

Result<Part> read_slurm_conf(std::string_view text, const std::string& file) {
  SwitchTree tree;
  HostLists lists;
  SwitchTree::Switch over_blocks{"over-blocks", {}, {}, file};
  for (const Line& line : lines_of(text)) {
    const std::string text_of_line = without_ornament(line.text);
    const std::vector<std::string_view> words = words_of(text_of_line);
    if (words.empty()) continue;
    const std::string where = fmt::format("{}:{}", file, line.number);
    SIBYL_TRY(Entry entry, read_entry(words, lists, where));
    if (entry.one.name.empty()) {
      if (lower(words.front()).starts_with("blocksizes=")) continue;  // how jobs are packed, no matter of links
      return fail("the line has no SwitchName or BlockName", where);
    }
    if (entry.block) over_blocks.switches.push_back(entry.one.name);
    tree.switches.push_back(std::move(entry.one));
  }
  if (tree.switches.empty()) return fail("the file lists no switch", file);
  if (!over_blocks.switches.empty()) tree.switches.push_back(std::move(over_blocks));
  Part part;
  part.format = "Slurm topology.conf";
  part.tree = std::move(tree);
  return part;
}

}  // namespace sibyl::import

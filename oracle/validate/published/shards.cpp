#include "oracle/validate/published/shards.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "oracle/validate/published/row.h"

namespace sibyl::published {
namespace {

// Say nothing that the others do not.
constexpr auto filling = std::to_array<std::string_view>(
    {"of",   "the",   "a",  "over", "across",   "all",  "and", "gpu",   "gpus", "rank", "ranks",
     "node", "nodes", "dp", "data", "parallel", "full", "x",   "times", "each", "per"});

bool is_number(const std::string& word) {
  return !word.empty() && word.size() < 8 &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int number(const std::string& word) {
  int value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

// "ZeRO-1 (every node)" -> zero, 1. What stands in parentheses is a remark, unless it is a number.
std::vector<std::string> plain_words(std::string_view text) {
  std::vector<std::string> words(1);
  std::vector<std::string> inside(1);
  bool remark = false;
  const auto end_word = [](std::vector<std::string>& list) {
    if (!list.back().empty()) list.emplace_back();
  };
  for (const char c : lower_case(text)) {
    if (c == '(' || c == ')') {
      end_word(words);
      end_word(inside);
      if (c == ')' && inside.size() == 2 && is_number(inside.front())) words.insert(words.end() - 1, inside.front());
      remark = c == '(';
      inside.assign(1, {});
      continue;
    }
    std::vector<std::string>& list = remark ? inside : words;
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    letter ? void(list.back() += c) : end_word(list);
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool begins(const std::string& word, std::string_view stem) { return word.starts_with(stem); }

}  // namespace

std::optional<Shards> shards_of(std::string_view text) {
  Shards shards;
  bool shards_something = false, of_replicas = false;  // the next number counts replicas
  const std::vector<std::string> words = plain_words(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (is_number(word)) {
      if (begins(i > 0 ? words[i - 1] : "", "zero")) {
        if (number(word) > 3) return std::nullopt;
        shards.stage = number(word);
      } else {
        int& counted = of_replicas ? shards.replicas : shards.ranks;
        const bool nodes = i + 1 < words.size() && begins(words[i + 1], "node");
        counted = counted == 0 && !(nodes && !of_replicas) ? number(word) : 0;
        if (counted == 0) return std::nullopt;
      }
    } else if (begins(word, "zero") || word == "fsdp" || word == "hsdp" || begins(word, "shard") || word == "group") {
      shards_something = true, of_replicas = false;
      if (word == "fsdp" || word == "hsdp") shards.stage = 3;
      if (word == "hsdp") shards.in_node = true;
      if (begins(word, "zero") && word.size() == 5 && is_number(word.substr(4))) shards.stage = number(word.substr(4));
      if (shards.stage.value_or(0) > 3) return std::nullopt;
    } else if (begins(word, "replica")) {
      of_replicas = true;
    } else if (word == "within" || word == "inside" || word == "in" || word == "hybrid") {
      shards.in_node = true;
    } else if (std::find(filling.begin(), filling.end(), word) == filling.end()) {
      return std::nullopt;
    }
  }
  if (!shards_something) return std::nullopt;
  return shards;
}

std::optional<int> group_of(const Shards& shards, int replicas, int in_node) {
  int group = replicas;
  if (shards.ranks > 0)
    group = shards.ranks;
  else if (shards.replicas > 0)
    group = replicas % shards.replicas == 0 ? replicas / shards.replicas : 0;
  else if (shards.in_node && in_node > 0)
    group = in_node;
  if (group == 0 || replicas % group != 0) return std::nullopt;
  if (shards.replicas > 0 && group * shards.replicas != replicas) return std::nullopt;
  return group;
}

int zero_stage(const Row& row) {
  if (row.zero || row.other_parallel.empty()) return static_cast<int>(row.zero.value_or(0));
  const std::optional<Shards> shards = shards_of(row.other_parallel);
  return shards ? shards->stage.value_or(0) : 0;
}

}  // namespace sibyl::published

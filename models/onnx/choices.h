// Guesses about where an export baked its batch in, and going back on them.
//
// At a batch of 1, [6, 4, 8] -> [6, 32] may mean S x (B H D) or (S B) x H D; only a later node tells. A rule asks
// pick() with what it sees; the first alternative is the likeliest. When a later node fails, advance() changes the last
// guess that has an alternative left, and the walk starts again. Equal questions get equal answers, so that a model of
// many equal blocks asks once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace sibyl::onnx_import {

class Choices {
 public:
  // A number below `alternatives`.
  std::size_t pick(const std::string& question, std::size_t alternatives) {
    if (alternatives < 2) return 0;
    const auto [answer, fresh] = answers_.try_emplace(question, Answer{0, alternatives});
    if (std::find(asked_.begin(), asked_.end(), question) == asked_.end()) asked_.push_back(question);
    return std::min(answer->second.chosen, alternatives - 1);
  }

  // False: every combination was tried.
  bool advance() {
    for (; !asked_.empty(); asked_.pop_back()) {
      Answer& answer = answers_.at(asked_.back());
      if (answer.chosen + 1 < answer.alternatives) {
        ++answer.chosen;
        asked_.clear();
        return true;
      }
      answers_.erase(asked_.back());
    }
    return false;
  }

 private:
  struct Answer {
    std::size_t chosen, alternatives;
  };
  std::map<std::string, Answer> answers_;
  std::vector<std::string> asked_;  // in the order of this walk
};

}  // namespace sibyl::onnx_import

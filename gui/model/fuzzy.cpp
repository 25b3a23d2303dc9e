#include "gui/model/fuzzy.h"

#include <algorithm>
#include <vector>

namespace sibyl::gui {
namespace {

constexpr int of_letter = 1, of_word_start = 8, of_neighbour = 5, impossible = -1'000'000;

bool starts_word(QStringView text, qsizetype at) { return at == 0 || !text[at - 1].isLetterOrNumber(); }

}  // namespace

// best[j]: the best score of the pattern so far with its last letter at j.
std::optional<int> fuzzyScore(QStringView pattern, QStringView text) {
  std::vector<int> best(static_cast<std::size_t>(text.size()), impossible);
  bool first = true;
  for (const QChar letter : pattern) {
    if (letter.isSpace()) continue;
    std::vector<int> next(best.size(), impossible);
    int before = impossible;  // the best that ends earlier than the letter before this one's place
    for (qsizetype j = 0; j < text.size(); ++j) {
      const std::size_t at = static_cast<std::size_t>(j);
      const int neighbour = j > 0 ? best[at - 1] : impossible;
      if (text[j].toCaseFolded() == letter.toCaseFolded()) {
        const int from = first ? 0 : std::max(before, neighbour > impossible ? neighbour + of_neighbour : impossible);
        if (from > impossible) next[at] = from + of_letter + (starts_word(text, j) ? of_word_start : 0);
      }
      before = std::max(before, neighbour);
    }
    best = std::move(next);
    first = false;
  }
  if (first) return 0;
  const int score = best.empty() ? impossible : *std::ranges::max_element(best);
  if (score == impossible) return std::nullopt;
  return score * 100 - static_cast<int>(text.size());  // of equal ones the shortest
}

}  // namespace sibyl::gui

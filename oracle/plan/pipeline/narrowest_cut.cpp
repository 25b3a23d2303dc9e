#include "oracle/plan/pipeline/narrowest_cut.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace sibyl {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

std::size_t level_of(std::size_t length) { return static_cast<std::size_t>(std::bit_width(length) - 1); }

}  // namespace

void NarrowestCut::set_rows(Rows& rows, std::size_t end, Place low) const {
  const Place high = this->high(end);
  if (low >= high) {
    rows.first[end] = rows.second[end] = static_cast<Place>(none_);
    return;
  }
  const std::size_t level = level_of(high - low), begin = level * at_.count();
  rows.first[end] = static_cast<Place>(begin + low);
  rows.second[end] = static_cast<Place>(begin + high - (std::size_t{1} << level));
}

// Of all places where any stage may end, the first begin that leaves it time enough.
void NarrowestCut::find_lows(double limit, const std::vector<Ends>& ends) {
  const std::size_t count = at_.count();
  for (auto* places : {&low_, &width_, &in_time_.first, &in_time_.second, &in_both_.first, &in_both_.second})
    places->resize(count);
  none_ = count * (level_of(count) + 1);
  levels_.room(none_ + 1)[none_] = infinite;
  std::size_t begin = 0, end = 0;
  for (const Ends& of : ends)
    for (end = std::max(end, of.first); end <= of.last; ++end) {
      while (at_.time[end] - at_.time[begin] > limit) ++begin;
      std::size_t low = begin;
      while (low < end && at_.cost(low, end) > limit) ++low;
      low_[end] = static_cast<Place>(low);
      width_[end] = high(end) > low ? high(end) - low_[end] : 0;
      set_rows(in_time_, end, low_[end]);
    }
}

// What memory leaves of that. Stages in a row that hold as much share what is found out.
void NarrowestCut::heed_memory(const StageLimits& memory, std::size_t stage, const Ends& ends) {
  constexpr std::size_t at_once = 4;
  const auto [first, last] = ends;
  const bool known = stage > 0 && memory.alike(stage, stage - 1) && first <= known_last_;
  std::size_t end = known ? known_last_ + 1 : first;
  if (!known) enough_from_ = 0;
  const auto note = [&](std::size_t e) {
    if (enough_from_ > low_[e]) return set_rows(in_both_, e, enough_from_);
    in_both_.first[e] = in_time_.first[e], in_both_.second[e] = in_time_.second[e];
  };
  bool scarce = false;  // at the last end
  while (end <= last) {
    // Mostly memory is enough for several ends at once.
    const std::size_t next = std::min(end + at_once, last + 1);
    if (!scarce && next > end + 1) {
      Place low = low_[end];
      for (std::size_t e = end + 1; e < next; ++e) low = std::min(low, low_[e]);
      if (memory.holds(stage, std::max(enough_from_, low), next - 1)) {
        for (; end < next; ++end) note(end);
        continue;
      }
    }
    Place begin = std::max(enough_from_, low_[end]);
    scarce = begin < high(end) && !memory.holds(stage, begin, end);
    if (scarce) {
      do ++begin;
      while (begin < high(end) && !memory.holds(stage, begin, end));
      enough_from_ = begin;
    }
    note(end++);
  }
  known_last_ = known ? std::max(known_last_, last) : last;
}

// Of each row of places whose length is a power of two, as far as the stage asks for it, the least of `before`.
void NarrowestCut::find_least(const Ends& reached, const double* before, const Ends& ends) {
  const auto [first, last] = ends;
  const std::size_t count = at_.count();
  std::size_t begin = count, end = high(last);
  Place widest = 0;
  for (std::size_t e = first; e <= last; ++e) begin = std::min<std::size_t>(begin, low_[e]);
  for (std::size_t e = first; e <= last; ++e) widest = std::max(widest, width_[e]);
  double* level = levels_.room(0);
  const std::size_t from = std::clamp(reached.first, begin, std::max(begin, end));
  const std::size_t to = std::clamp(reached.last + 1, from, std::max(from, end));
  std::fill(level + begin, level + from, infinite);
  for (std::size_t b = from; b < to; ++b) level[b] = before[b - reached.first];
  if (to < end) std::fill(level + to, level + end, infinite);
  for (std::size_t length = 1; 2 * length <= widest; length *= 2) {
    double* next = level + count;
    const double* second = level + length;
    for (std::size_t b = begin; b + 2 * length <= end; ++b) next[b] = level[b] < second[b] ? level[b] : second[b];
    level = next;
  }
}

std::vector<std::size_t> NarrowestCut::find(const StageLimits& memory, double limit, const std::vector<Ends>& ends) {
  find_lows(limit, ends);
  row_at_.clear();
  std::size_t all = 0;
  for (const auto& [first, last] : ends) {
    row_at_.push_back(all);
    all += last - first + 1;
  }
  double* row = least_.room(all);
  const double at_the_beginning = 0;
  const double* before = &at_the_beginning;
  Ends reached{0, 0};
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const auto [first, last] = ends[s];
    if (memory.any()) heed_memory(memory, s, ends[s]);
    const Rows& rows = memory.any() ? in_both_ : in_time_;
    find_least(reached, before, ends[s]);
    const double* levels = levels_.values();
    for (std::size_t end = first; end <= last; ++end) {
      const double one = levels[rows.first[end]], other = levels[rows.second[end]];
      row[end - first] = (one < other ? one : other) + at_.sent[end];
    }
    before = row;
    row += last - first + 1;
    reached = ends[s];
  }
  return begins_of(ends);
}

std::vector<std::size_t> NarrowestCut::begins_of(const std::vector<Ends>& ends) const {
  const auto least = [&](std::size_t stage, std::size_t end) {
    return least_.values()[row_at_[stage] + end - ends[stage].first];
  };
  std::size_t end = at_.count() - 1;
  std::vector<std::size_t> begins(ends.size() - 1);
  if (!(least(ends.size() - 1, end) < infinite)) return {};
  for (std::size_t s = ends.size(); s-- > 1;) {
    std::size_t begin = std::min<std::size_t>(high(end) - 1, ends[s - 1].last);
    while (least(s - 1, begin) + at_.sent[end] != least(s, end)) --begin;
    begins[s - 1] = end = begin;
  }
  return begins;
}

}  // namespace sibyl

#include "oracle/plan/pipeline/cut_bounds.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace sibyl {
namespace {

// Sums are rounded: what bounds where stages may end must not be too strict.
constexpr double rounding = 1e-9;

// Where time leaves more places than this, the last one that memory leaves is looked for from the stage's other end on,
// in steps that double.
constexpr std::size_t wide = 64;

// The first of ascending values that is not below(): looked for from `near` on, in steps that double. Where a stage
// ends is mostly not far from where it begins.
template <class Below>
std::size_t first_not(const std::vector<double>& values, std::size_t near, Below&& below) {
  std::size_t low = 0, high = values.size(), step = 1;
  if (below(values[near])) {
    for (low = near + 1; low + step <= high && below(values[low + step - 1]); step *= 2) low += step;
    high = std::min(high, low + step - 1);
  } else {
    for (high = near; high >= step && !below(values[high - step]); step *= 2) high -= step;
    low = high >= step ? high - step + 1 : 0;
  }
  const auto begin = values.begin();
  return static_cast<std::size_t>(
      std::partition_point(begin + static_cast<std::ptrdiff_t>(low), begin + static_cast<std::ptrdiff_t>(high), below) -
      begin);
}

}  // namespace

std::size_t CutBounds::last_done_by(double time, std::size_t near) const {
  return first_not(at_.time, near, [time](double before) { return before <= time; }) - 1;
}

std::vector<CutBounds::Ends> CutBounds::ends(double limit) const {
  limit *= 1 + rounding;
  std::vector<Ends> ends(stages_, {end_, end_});
  for (std::size_t s = stages_; s-- > 1;) {
    ends[s - 1].first = std::max(nearest(s, ends[s].first, limit), s);
    ends[s - 1].last = latest_begin(s, ends[s].last, limit);
  }
  for (std::size_t s = 0, begin = 0; s < stages_; ++s) {
    begin = furthest(s, begin, limit, rounding);
    ends[s].last = std::min(begin, ends[s].last);
    if (ends[s].last < ends[s].first) return {};
  }
  // Where one comes no further than those before it, these have to leave it something.
  for (std::size_t s = stages_; s-- > 1;) {
    ends[s - 1].last = std::min(ends[s - 1].last, latest_begin(s, ends[s].last, limit));
    if (ends[s - 1].last < ends[s - 1].first) return {};
  }
  return ends;
}

bool CutBounds::come_to_beginning() const {
  const double limit = std::numeric_limits<double>::infinity();
  std::size_t end = end_;
  for (std::size_t s = stages_; s-- > 1;) end = std::max(nearest(s, end, limit), s);
  return memory_.holds(0, 0, end, rounding);
}

// Of the places where the stage before may end the last one is the best to begin at, in time and in memory.
bool CutBounds::reachable(double limit, const std::vector<Ends>& ends) const {
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<std::uint32_t> before{0}, now;  // by place: up to there, the last one where stages so far may end
  Ends reached{0, 0};
  for (std::size_t s = 0; s < stages_; ++s) {
    const auto [first, last] = ends[s];
    now.resize(last - first + 1);
    std::uint32_t latest = none;
    for (std::size_t end = first; end <= last; ++end) {
      const std::size_t from = std::min(at_.begins[end], reached.last + 1);
      const std::uint32_t begin = from > reached.first ? before[from - 1 - reached.first] : none;
      if (begin != none && at_.cost(begin, end) <= limit && memory_.holds(s, begin, end))
        latest = static_cast<std::uint32_t>(end);
      now[end - first] = latest;
    }
    if (latest == none) return false;
    std::swap(before, now);
    reached = ends[s];
  }
  return true;
}

// Where a stage begins last, if it ends here or earlier and trains something; the last one ends here. 0: nowhere.
std::size_t CutBounds::latest_begin(std::size_t stage, std::size_t end, double limit) const {
  for (; at_.begins[end] > 0; --end) {
    const std::size_t begin = at_.begins[end] - 1;
    if (at_.cost(begin, end) <= limit && memory_.holds(stage, begin, end, rounding)) return begin;
    if (stage + 1 == stages_) break;
  }
  return 0;
}

std::size_t CutBounds::furthest(std::size_t stage, std::size_t begin, double limit, double tolerance) const {
  std::size_t end = begin, beyond = last_done_by(at_.time[begin] + limit, begin) + 1;
  while (beyond <= end_ && at_.time[beyond] - at_.time[begin] <= limit) ++beyond;  // rounding
  if (memory_.holds(stage, begin, beyond - 1, tolerance)) end = beyond - 1;
  for (std::size_t step = 1; beyond - end > wide && end + step < beyond; step *= 2)
    (memory_.holds(stage, begin, end + step, tolerance) ? end : beyond) = end + step;
  while (end + 1 < beyond) {
    const std::size_t middle = (end + beyond) / 2;
    (memory_.holds(stage, begin, middle, tolerance) ? end : beyond) = middle;
  }
  while (end > begin && at_.cost(begin, end) > limit) --end;
  return end;
}

// Before which place no stage begins that ends here or later.
std::size_t CutBounds::nearest(std::size_t stage, std::size_t end, double limit) const {
  const double from = at_.done[end] - limit;
  std::size_t begin = first_not(at_.time, end, [from](double before) { return before < from; });
  if (begin < end && memory_.holds(stage, begin, end, rounding)) return begin;  // mostly
  std::size_t last = end;
  for (std::size_t step = 1; last - begin > wide && begin + step <= last; step *= 2) {
    if (memory_.holds(stage, last - step, end, rounding))
      last -= step;
    else
      begin = last - step + 1;
  }
  while (begin < last) {
    const std::size_t middle = (begin + last) / 2;
    if (memory_.holds(stage, middle, end, rounding))
      last = middle;
    else
      begin = middle + 1;
  }
  return begin;
}

}  // namespace sibyl

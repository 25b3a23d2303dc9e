// The cut that sends least, and whether there is one, beside a table filled in as the definition has it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "oracle/plan/pipeline/cut_bounds.h"
#include "oracle/plan/pipeline/narrowest_cut.h"

namespace sibyl {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

int drawn(int least, int most) { return *rc::gen::inRange(least, most + 1); }

// Some places train nothing, or take no time; few values of what is sent, so that many cuts send as much.
CutPlaces any_places() {
  CutPlaces at;
  const int count = drawn(2, 60);
  double time = 0;
  int trains = 0;
  for (int p = 0; p <= count; ++p) {
    at.sent.push_back(p == 0 || p == count ? 0 : drawn(1, 4));
    at.link.push_back(p == 0 || p == count ? 0 : at.sent.back() * 0.5);
    at.time.push_back(time);
    at.trains.push_back(trains);
    time += drawn(0, 5);
    trains += drawn(0, 2) > 0 ? 1 : 0;
  }
  at.begins.assign(at.count(), 0);
  for (std::size_t p = 1; p < at.count(); ++p) at.begins[p] = at.trains[p] > at.trains[p - 1] ? p : at.begins[p - 1];
  at.done.assign(at.count(), at.time.back());
  for (std::size_t p = at.count() - 1; p-- > 0;) at.done[p] = std::min(at.done[p + 1], at.time[p] + at.link[p]);
  at.longest_link = *std::ranges::max_element(at.link);
  return at;
}

// Of equal ones that of the latest begins, from the last stage on.
std::vector<std::size_t> by_table(const CutPlaces& at, std::size_t stages, double limit) {
  const std::size_t end = at.count() - 1;
  std::vector<std::vector<double>> least(stages + 1, std::vector<double>(at.count(), never));
  std::vector<std::vector<std::size_t>> from(stages + 1, std::vector<std::size_t>(at.count(), 0));
  least[0][0] = 0;
  for (std::size_t s = 1; s <= stages; ++s)
    for (std::size_t e = 1; e <= end; ++e)
      for (std::size_t b = 0; b < e; ++b) {
        if (at.trains[b] == at.trains[e] || at.cost(b, e) > limit) continue;
        if (least[s - 1][b] + at.sent[e] > least[s][e] || least[s - 1][b] == never) continue;
        least[s][e] = least[s - 1][b] + at.sent[e];
        from[s][e] = b;
      }
  if (least[stages][end] == never) return {};
  std::vector<std::size_t> begins(stages - 1);
  for (std::size_t s = stages, e = end; s-- > 1;) begins[s - 1] = e = from[s + 1][e];
  return begins;
}

RC_GTEST_PROP(NarrowestCut, IsThatOfATableOfAllPlaces, ()) {
  const CutPlaces at = any_places();
  NarrowestCut narrowest(at);
  for (int n = 0; n < 5; ++n) {  // after each other: what they work in is kept
    const auto stages = static_cast<std::size_t>(drawn(2, 12));
    if (stages >= at.count() || static_cast<int>(stages) > at.trains.back()) continue;
    const StageLimits none(stages, nullptr);
    const CutBounds bounds(at, none, stages);
    const double limit = at.time.back() / static_cast<double>(stages) * 0.1 * drawn(8, 60);
    const std::vector<std::size_t> expected = by_table(at, stages, limit);
    const std::vector<CutBounds::Ends> ends = bounds.ends(limit);
    RC_ASSERT(expected.empty() || !ends.empty());
    if (ends.empty()) continue;
    RC_ASSERT(bounds.reachable(limit, ends) == !expected.empty());
    RC_ASSERT(narrowest.find(none, limit, ends) == expected);
  }
}

}  // namespace
}  // namespace sibyl

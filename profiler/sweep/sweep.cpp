#include "profiler/sweep/sweep.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/statistics.h"

namespace sibyl {
namespace {

using Acceptable = std::function<bool(const KernelKey&)>;

std::vector<double> places(const SweepAxis& axis) {
  std::vector<double> result;
  constexpr double rounding = 1e-9;
  for (double x = axis.low; x <= axis.high + rounding; x += axis.step) result.push_back(x);
  return result;
}

SweepKeys keys_at(const SweepGrid& grid, const std::vector<double>& place, const Acceptable& acceptable) {
  std::vector<std::int64_t> sizes;
  std::transform(place.begin(), place.end(), std::back_inserter(sizes), sweep_size);
  SweepKeys keys = grid.kernels(sizes);
  if (acceptable) std::erase_if(keys, [&](const KernelKey& key) { return !acceptable(key); });
  return keys;
}

// Calls `visit` with each combination of one value of each list.
void for_each_place(const std::vector<std::vector<double>>& lists,
                    const std::function<void(const std::vector<double>&)>& visit) {
  for (const auto& list : lists)
    if (list.empty()) return;
  std::vector<std::size_t> at(lists.size(), 0);
  while (true) {
    std::vector<double> place;
    for (std::size_t d = 0; d < lists.size(); ++d) place.push_back(lists[d][at[d]]);
    visit(place);
    std::size_t d = lists.size();
    while (d > 0 && ++at[d - 1] == lists[d - 1].size()) at[--d] = 0;
    if (d == 0) return;
  }
}

void plan_grid(Sweep& sweep, std::size_t number, const Acceptable& acceptable) {
  const SweepGrid& grid = sweep.grids[number];
  std::vector<std::vector<double>> corners, middles;
  for (const SweepAxis& axis : grid.axes) {
    corners.push_back(places(axis));
    std::vector<double> between;
    for (std::size_t i = 0; i + 1 < corners.back().size(); ++i) between.push_back(corners.back()[i] + axis.step / 2);
    middles.push_back(between.empty() ? corners.back() : between);  // an axis of one place has no cells
  }
  for_each_place(corners, [&](const std::vector<double>& place) {
    for (KernelKey& key : keys_at(grid, place, acceptable)) sweep.points[number].push_back(std::move(key));
  });
  std::size_t cells = 1, cell = 0;
  for (const auto& list : middles) cells *= list.size();
  const std::size_t every = std::min(static_cast<std::size_t>(grid.every), cells);  // of few, one
  for_each_place(middles, [&](const std::vector<double>& place) {
    if (cell++ % every != every / 2) return;
    SweepKeys keys = keys_at(grid, place, acceptable);
    if (!keys.empty()) sweep.checks.push_back({std::move(keys), number, place, 1.0});
  });
}

using Times = std::unordered_map<KernelKey, std::vector<double>>;

Times times_of(const std::vector<KernelSample>& samples) {
  Times times;
  for (const KernelSample& sample : samples) times[sample.key].push_back(sample.time.value());
  return times;
}

// The table of the sweep's points alone.
KernelTable points_only(const Sweep& sweep, const Device& device, const std::vector<KernelSample>& samples) {
  std::unordered_set<KernelKey> points;
  for (const SweepKeys& keys : sweep.points) points.insert(keys.begin(), keys.end());
  std::vector<KernelSample> chosen;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(chosen),
               [&](const KernelSample& s) { return points.contains(s.key); });
  return {device, std::move(chosen)};
}

// |interpolated / timed - 1| of those of the keys that were timed.
std::vector<double> errors_of(const SweepKeys& keys, const KernelTable& table, const Times& times) {
  std::vector<double> errors;
  for (const KernelKey& key : keys)
    if (const auto timed = times.find(key); timed != times.end())
      errors.push_back(std::abs(table.estimate(key).time.time.value() / median(timed->second) - 1.0));
  return errors;
}

// The value below which nine tenths lie: of few, the largest.
double ninth_decile(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const auto index = static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(values.size()))) - 1;
  return values[index];
}

}  // namespace

std::int64_t sweep_size(double log2) {
  const double size = std::exp2(log2);
  return size < 32 ? std::max<std::int64_t>(1, std::llround(size)) : 8 * std::llround(size / 8);
}

Sweep plan_sweep(std::vector<SweepGrid> grids, const Acceptable& acceptable) {
  Sweep sweep;
  sweep.grids = std::move(grids);
  sweep.points.resize(sweep.grids.size());
  for (std::size_t i = 0; i < sweep.grids.size(); ++i) plan_grid(sweep, i, acceptable);
  return sweep;
}

SweepKeys Sweep::keys() const {
  std::vector<SweepKeys> lists = points;
  for (const SweepCheck& check : checks)
    lists[check.grid].insert(lists[check.grid].end(), check.keys.begin(), check.keys.end());
  std::size_t longest = 0;
  for (const SweepKeys& list : lists) longest = std::max(longest, list.size());
  SweepKeys result;
  std::unordered_set<KernelKey> known;
  // A family's list is walked by a stride that visits all of it, so that its beginning, too, is spread over its sizes.
  const auto stride = [](std::size_t n) {
    std::size_t s = std::max<std::size_t>(1, static_cast<std::size_t>(0.618 * static_cast<double>(n)));
    while (std::gcd(s, n) != 1) ++s;
    return s;
  };
  for (std::size_t round = 0; round < longest; ++round)
    for (const SweepKeys& list : lists)
      for (std::size_t i = round * list.size() / longest; i < (round + 1) * list.size() / longest; ++i) {
        const KernelKey& key = list[i * stride(list.size()) % list.size()];
        if (known.insert(key).second) result.push_back(key);
      }
  return result;
}

std::vector<SweepError> check_error(const Sweep& sweep, const Device& device,
                                    const std::vector<KernelSample>& samples) {
  const KernelTable table = points_only(sweep, device, samples);
  const Times times = times_of(samples);
  std::vector<SweepError> result;
  for (std::size_t i = 0; i < sweep.grids.size(); ++i) {
    SweepError error;
    error.family = sweep.grids[i].family;
    error.points = static_cast<std::size_t>(std::count_if(sweep.points[i].begin(), sweep.points[i].end(),
                                                          [&](const KernelKey& key) { return times.contains(key); }));
    std::vector<double> errors;
    for (const SweepCheck& check : sweep.checks) {
      if (check.grid != i) continue;
      const std::vector<double> own = errors_of(check.keys, table, times);
      errors.insert(errors.end(), own.begin(), own.end());
    }
    error.checks = errors.size();
    error.median = median(errors);
    error.p90 = ninth_decile(errors);
    error.greatest = errors.empty() ? 0.0 : *std::max_element(errors.begin(), errors.end());
    result.push_back(std::move(error));
  }
  return result;
}

std::size_t refine(Sweep& sweep, const Device& device, const std::vector<KernelSample>& samples, double tolerance,
                   const Acceptable& acceptable) {
  const KernelTable table = points_only(sweep, device, samples);
  const Times times = times_of(samples);
  std::vector<SweepCheck> kept, finer;
  std::size_t cut = 0;
  for (SweepCheck& check : sweep.checks) {
    const std::vector<double> errors = errors_of(check.keys, table, times);
    if (errors.empty() || *std::max_element(errors.begin(), errors.end()) <= tolerance) {
      kept.push_back(std::move(check));
      continue;
    }
    ++cut;
    const SweepGrid& grid = sweep.grids[check.grid];
    for (const double side : {-0.25, 0.25}) {
      SweepCheck half{{}, check.grid, check.middle, check.reach / 2};
      for (std::size_t d = 0; d < grid.axes.size(); ++d)
        if (grid.axes[d].high > grid.axes[d].low) half.middle[d] += side * check.reach * grid.axes[d].step;
      half.keys = keys_at(grid, half.middle, acceptable);
      if (!half.keys.empty()) finer.push_back(std::move(half));
    }
    SweepKeys& points = sweep.points[check.grid];
    points.insert(points.end(), check.keys.begin(), check.keys.end());
  }
  sweep.checks = std::move(kept);
  for (SweepCheck& check : finer) sweep.checks.push_back(std::move(check));
  return cut;
}

}  // namespace sibyl

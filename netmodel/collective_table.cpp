#include "netmodel/collective_table.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/statistics.h"

namespace sibyl {
namespace {

MeasuredPlacement prepared(const GroupPlacement& placement, std::vector<CurvePoint> samples) {
  MeasuredPlacement result{placement, merged(std::move(samples)), 0.0};
  const std::vector<CurvePoint> raw = result.points;
  never_falling(result.points);
  double squares = 0.0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const double moved = std::log(result.points[i].seconds / raw[i].seconds);
    squares += moved * moved + raw[i].spread * raw[i].spread;
  }
  if (!raw.empty()) result.error = std::sqrt(squares / static_cast<double>(raw.size()));
  return result;
}

double share_between(const std::pair<const double, double>& below, const std::pair<const double, double>& above,
                     double bytes) {
  const double part = std::log(bytes / below.first) / std::log(above.first / below.first);
  return std::lerp(below.second, above.second, part);
}

double log_ratio(int a, int b) { return std::abs(std::log2(static_cast<double>(a) / b)); }

}  // namespace

double MeasuredPlacement::share_in_turn(double bytes) const {
  if (in_turn.empty() || bytes < in_turn.begin()->first) return 1.0;
  const auto above = in_turn.lower_bound(bytes);
  if (above == in_turn.end()) return std::prev(above)->second;
  return above->first == bytes ? above->second : share_between(*std::prev(above), *above, bytes);
}

double distance(const GroupPlacement& a, const GroupPlacement& b) {
  return log_ratio(a.ranks_per_node, b.ranks_per_node) + log_ratio(a.nodes, b.nodes) +
         log_ratio(a.groups_per_node, b.groups_per_node);
}

void never_falling(std::vector<CurvePoint>& points) {
  struct Pool {
    double mean;
    std::size_t count;
  };
  std::vector<Pool> pools;
  for (const CurvePoint& point : points) {
    pools.push_back({std::log(point.seconds), 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean > pools.back().mean) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& joined = pools.back();
      const auto a = static_cast<double>(joined.count), b = static_cast<double>(last.count);
      joined = {(joined.mean * a + last.mean * b) / (a + b), joined.count + last.count};
    }
  }
  std::size_t i = 0;
  for (const Pool& pool : pools)
    for (std::size_t end = i + pool.count; i < end; ++i) points[i].seconds = std::exp(pool.mean);
}

double interpolated(std::span<const CurvePoint> points, double bytes) {
  const auto after = std::ranges::lower_bound(points, bytes, {}, &CurvePoint::bytes);
  if (after == points.begin()) return after->seconds;
  if (after == points.end()) return points.back().seconds;
  const auto before = std::prev(after);
  return std::lerp(before->seconds, after->seconds, (bytes - before->bytes) / (after->bytes - before->bytes));
}

CollectiveTable::CollectiveTable(std::span<const CollectiveSample> samples) {
  std::map<std::pair<Collective, Algorithm>, std::map<GroupPlacement, std::vector<CurvePoint>>> sorted;
  std::map<std::tuple<Collective, Algorithm, GroupPlacement>, std::map<double, std::vector<double>>> in_turn;
  for (const CollectiveSample& sample : samples) {
    const GroupPlacement& at = sample.placement;
    if (at.ranks_per_node < 1 || at.nodes < 1 || at.groups_per_node < 1) continue;
    sorted[{sample.collective, sample.algorithm}][at].push_back(
        {sample.bytes.value(), sample.time.value(), sample.spread});
    if (sample.in_turn)
      in_turn[{sample.collective, sample.algorithm, at}][sample.bytes.value()].push_back(*sample.in_turn);
  }
  for (auto& [key, placements] : sorted)
    for (auto& [placement, points] : placements)
      if (MeasuredPlacement ready = prepared(placement, std::move(points)); !ready.points.empty()) {
        if (const auto shares = in_turn.find({key.first, key.second, placement}); shares != in_turn.end())
          for (const auto& [bytes, all] : shares->second) ready.in_turn[bytes] = median(all);
        measured_[key].push_back(std::move(ready));
      }
}

bool CollectiveTable::has(Collective collective, Algorithm algorithm) const {
  return measured_.contains({collective, algorithm});
}

std::span<const MeasuredPlacement> CollectiveTable::placements(Collective collective, Algorithm algorithm) const {
  const auto found = measured_.find({collective, algorithm});
  return found == measured_.end() ? std::span<const MeasuredPlacement>() : std::span(found->second);
}

const MeasuredPlacement* CollectiveTable::nearest(Collective collective, Algorithm algorithm,
                                                  const GroupPlacement& placement) const {
  const MeasuredPlacement* best = nullptr;
  double best_distance = 0.0;
  for (const MeasuredPlacement& candidate : placements(collective, algorithm)) {
    if ((candidate.placement.nodes == 1) != (placement.nodes == 1) || candidate.placement.size() == 1) continue;
    const double here = distance(candidate.placement, placement);
    if (best == nullptr || here < best_distance) best = &candidate, best_distance = here;
  }
  return best;
}

std::optional<std::pair<const MeasuredPlacement*, const MeasuredPlacement*>> CollectiveTable::around(
    Collective collective, Algorithm algorithm, const GroupPlacement& placement) const {
  const MeasuredPlacement *fewer = nullptr, *more = nullptr;
  for (const MeasuredPlacement& candidate : placements(collective, algorithm)) {
    const GroupPlacement& at = candidate.placement;
    if (at.nodes != 1 || placement.nodes != 1 || at.groups_per_node != placement.groups_per_node || at.size() == 1)
      continue;
    const int ranks = at.ranks_per_node;
    if (ranks < placement.ranks_per_node && (fewer == nullptr || ranks > fewer->placement.ranks_per_node))
      fewer = &candidate;
    if (ranks > placement.ranks_per_node && (more == nullptr || ranks < more->placement.ranks_per_node))
      more = &candidate;
  }
  if (fewer == nullptr || more == nullptr) return std::nullopt;
  return std::pair{fewer, more};
}

}  // namespace sibyl

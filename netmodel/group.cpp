#include "netmodel/group.h"

#include <algorithm>
#include <cmath>

#include "netmodel/between_counts.h"

namespace sibyl {
namespace {

// Errors (one standard deviation, relative) that no sample tells: see docs/models/network.md.
constexpr double error_per_octave_of_gap = 0.02;    // interpolating between sizes
constexpr double error_per_octave_beyond = 0.05;    // beyond the sampled sizes
constexpr double error_per_octave_of_count = 0.10;  // carried to another placement
constexpr double error_between_counts = 0.09;       // among measured numbers of ranks in a node
constexpr double error_of_formula = 0.15;           // beside that of the point-to-point times
// GPU libraries between nodes reach their full rate only with messages longer than this; below, formulas come out too
// fast.
constexpr double gpu_full_rate_bytes = 128.0 * 1024 * 1024;
constexpr double error_below_full_rate = 0.40;

constexpr std::size_t slot(Algorithm algorithm) { return static_cast<std::size_t>(algorithm); }

bool is_size(const CurvePoint& point, double bytes) { return std::abs(point.bytes - bytes) <= 0.02 * point.bytes; }

}  // namespace

Network::Model::Group::Group(const Model& model, Collective collective, const GroupPlacement& placement)
    : model_(model),
      collective_(collective),
      placement_(placement),
      told_(rules_for(model.rules(), collective, std::max(1, placement.size()))),
      usual_(rules_for(collective::sibyl_rules(), collective, std::max(1, placement.size()))),
      library_timed_(model.table.has(collective, Algorithm::automatic)),
      timed_(model.any(collective)) {
  for (Rule& rule : told_)
    if (rule.runs != Algorithm::automatic) rule.runs = model.resolved(collective, rule.runs);
  // GPU libraries choose among rings, trees and switches that add; sibyl::Communicator, between CPU ranks, has its own
  // rule.
  const Library library = model.library.library;
  weighs_ =
      collective == Collective::all_reduce && (library == Library::nccl || (model.gpus() && library != Library::sibyl));
  const PointToPoint& messages = model.point_to_point;
  const double across = placement.nodes > 1 ? messages.error({model.topology.span(placement.nodes), 1}) : 0.0;
  const double inside = placement.ranks_per_node > 1 ? messages.error({0, 1}) : 0.0;
  const double ramp = model.gpus() && placement.nodes > 1 ? error_below_full_rate : 0.0;
  shaped_ =
      (placement.nodes == 1 || messages.measured(false)) && (placement.ranks_per_node == 1 || messages.measured(true));
  error_ = std::hypot(std::max(across, inside), error_of_formula, 0.0);
  error_below_full_rate_ = std::hypot(std::max(across, inside), error_of_formula, ramp);
}

std::vector<Network::Model::Group::Rule> Network::Model::Group::rules_for(collective::Rules rules,
                                                                          Collective collective, int ranks) {
  std::vector<Rule> result;
  for (const ChoiceRule& rule : rules)
    if (collective::concerns(rule, collective, ranks))
      result.push_back({collective::holds_up_to(rule, ranks), rule.algorithm});
  return result;
}

Algorithm Network::Model::Group::first(const std::vector<Rule>& rules, double bytes) {
  const auto whole = static_cast<std::int64_t>(std::min(bytes, 1e18));
  const auto fits = std::ranges::find_if(rules, [&](const Rule& rule) { return whole <= rule.up_to; });
  return fits == rules.end() ? Algorithm::automatic : fits->runs;
}

void Network::Model::Group::add_formulas(Algorithm runs, Talk talk, std::vector<Formula>& formulas) const {
  const auto add = [&](Protocol speaks, collective::Ways ways) {
    formulas.emplace_back(model_, collective_, runs, placement_, speaks, ways);
  };
  if (talk == Talk::none) return add(Protocol::automatic, collective::Ways::one);
  const std::span<const Protocol> known = model_.protocols(collective_, runs);
  // Nobody is sent back what he sends down a tree, or up.
  const bool one_way = collective_ == Collective::broadcast || collective_ == Collective::reduce;
  if (known.empty()) return add(Protocol::automatic, one_way ? collective::Ways::one : collective::Ways::both);
  const bool told = std::ranges::find(known, model_.protocol) != known.end();
  for (const Protocol speaks : known)
    if (!told || speaks == model_.protocol) add(speaks, collective::Ways::both);
}

const Network::Model::Fastest& Network::Model::Group::formulas(Algorithm runs, Talk talk) const {
  return formulas_[static_cast<std::size_t>(talk)][slot(runs)].get([&] {
    std::vector<Formula> formulas;
    if (runs != Algorithm::automatic) {
      add_formulas(runs, talk, formulas);
      return Fastest(std::move(formulas));
    }
    add_formulas(Algorithm::ring, talk, formulas);
    add_formulas(Algorithm::tree, talk, formulas);
    if (model_.switches_add()) add_formulas(Algorithm::in_network, talk, formulas);
    return Fastest(std::move(formulas));
  });
}

Algorithm Network::Model::Group::by_size(double bytes) const {
  const Algorithm told = told_.empty() ? Algorithm::automatic : first(told_, bytes);
  return told != Algorithm::automatic || weighs_ ? told : first(usual_, bytes);
}

Algorithm Network::Model::Group::fastest(double bytes, Talk talk) const {
  const Algorithm runs = by_size(bytes);
  return runs == Algorithm::automatic ? formulas(runs, talk).algorithm(bytes) : runs;
}

double Network::Model::Group::formula(Algorithm chosen, double bytes, Talk talk) const {
  return chosen == Algorithm::automatic ? chosen_by_size(by_size(bytes), bytes, talk) : seconds(chosen, bytes, talk);
}

double Network::Model::Group::chosen_by_size(Algorithm runs, double bytes, Talk talk) const {
  double result = seconds(runs, bytes, talk);
  if (collective_ != Collective::all_reduce || model_.gpus()) return result;
  const std::vector<Held>& held = held_[static_cast<std::size_t>(talk)].get([&] {
    std::vector<Held> sizes;
    for (const Rule& rule : usual_) {
      const auto size = static_cast<double>(rule.up_to);
      sizes.push_back({size, seconds(by_size(size), size, talk)});
    }
    return sizes;
  });
  for (const Held& before : held)
    if (before.bytes < bytes) result = std::max(result, before.seconds);
  return result;
}

CollectiveEstimate Network::Model::Group::answer(double bytes, Algorithm asked) const {
  CollectiveEstimate result = chosen(bytes, asked == Algorithm::automatic ? model_.algorithm : asked);
  const Samples& timed = samples(model_.of_samples(asked, result.algorithm));
  if (timed.of_this_group) result.in_turn = timed.nearest->share_in_turn(bytes);
  return result;
}

CollectiveEstimate Network::Model::Group::chosen(double bytes, Algorithm wanted) const {
  if (wanted != Algorithm::automatic) {
    const Algorithm runs = model_.resolved(collective_, wanted);
    return {estimate(runs, bytes), runs};
  }
  if (model_.by_rules()) return chosen_by_rules(bytes);
  // The library's own choice, where it was measured; else the algorithm that is fastest.
  if (library_timed_ || !timed_) {
    if (library_timed_ && samples(Algorithm::automatic).nearest != nullptr)
      return {estimate(Algorithm::automatic, bytes), fastest(bytes)};
    if (!weighs_) {
      const Algorithm runs = by_size(bytes);
      return {estimated(chosen_by_size(runs, bytes, Talk::in_protocol), bytes), runs};
    }
    // Between GPUs what is fastest by formula is found and timed in one.
    const Fastest::Pick pick = formulas(Algorithm::automatic, Talk::in_protocol).at(bytes);
    return {estimated(model_.launch + pick.seconds, bytes), pick.formula->runs()};
  }
  std::optional<CollectiveEstimate> best;
  for (const Algorithm candidate : chosen_where_measured) {
    if (!model_.table.has(collective_, candidate)) continue;
    const CollectiveEstimate here{estimate(candidate, bytes), candidate};
    if (!best || here.time.time < best->time.time) best = here;
  }
  return *best;
}

CollectiveEstimate Network::Model::Group::by_rule(double bytes) const {
  const Algorithm runs = fastest(bytes);
  // Of the fastest by formula samples of some must not be asked beside formulas of others.
  if (model_.library.library == Library::nccl) return {estimated(formula(runs, bytes), bytes), runs};
  return {estimate(runs, bytes), runs};
}

CollectiveEstimate Network::Model::Group::chosen_by_rules(double bytes) const {
  CollectiveEstimate result = by_rule(bytes);
  const std::vector<Held>& held = held_by_rules_.get([&] {
    std::vector<Held> sizes;
    for (const Rule& rule : told_) {
      const auto size = static_cast<double>(rule.up_to);
      sizes.push_back({size, by_rule(size).time.time.value()});
    }
    return sizes;
  });
  for (const Held& before : held)
    if (before.bytes < bytes) result.time.time = std::max(result.time.time, Seconds{before.seconds});
  return result;
}

Estimate Network::Model::Group::estimate(Algorithm chosen, double bytes) const {
  if (chosen == Algorithm::automatic) chosen = known_beyond(bytes);
  const Samples& known = samples(chosen);
  return known.nearest != nullptr ? from_samples(known, chosen, bytes) : estimated(formula(chosen, bytes), bytes);
}

Estimate Network::Model::Group::estimated(double seconds, double bytes) const {
  return {Seconds{seconds}, bytes < gpu_full_rate_bytes ? error_below_full_rate_ : error_, Provenance::estimated};
}

// Beyond what was measured of the communicator's own choice it runs one algorithm, of which there may be samples: as
// long ones, or of another than it chose last.
Algorithm Network::Model::Group::known_beyond(double bytes) const {
  if (model_.gpus() || !library_timed_) return Algorithm::automatic;
  const Samples& library = samples(Algorithm::automatic);
  if (library.nearest == nullptr || bytes <= library.reach) return Algorithm::automatic;
  const Algorithm runs = fastest(bytes);
  const Samples& own = samples(runs);
  if (own.nearest == nullptr || own.nearest->placement != library.nearest->placement) return Algorithm::automatic;
  const bool chosen_last = runs == model_.group(collective_, library.nearest->placement).fastest(library.reach);
  return chosen_last && own.reach < library.reach ? Algorithm::automatic : runs;
}

const Network::Model::Group::Samples& Network::Model::Group::samples(Algorithm of) const {
  return samples_[slot(of)].get([&] { return carried(of); });
}

Network::Model::Group::Samples Network::Model::Group::carried(Algorithm of) const {
  Samples result;
  result.nearest = model_.table.nearest(collective_, of, placement_);
  if (result.nearest == nullptr) return result;
  const MeasuredPlacement& nearest = *result.nearest;
  result.reach = nearest.points.back().bytes;
  if (nearest.placement == placement_) {
    result.of_this_group = true;
    result.here = nearest;
  } else if (const auto around = model_.table.around(collective_, of, placement_)) {
    result.here = between_counts(*around->first, *around->second, placement_.ranks_per_node);
    result.error_of_count = error_between_counts;
  } else {
    const double octaves = distance(nearest.placement, placement_);
    result.here = carried_from(nearest, of);
    result.error_of_count = error_per_octave_of_count * std::max(1.0, octaves);
    result.far = octaves > 2;
  }
  const std::vector<CurvePoint>& points = result.here.points;
  if (shaped_)
    for (const CurvePoint& point : points) result.formula.push_back(formula(of, point.bytes));
  const auto with_count = [&](double error) {
    return result.of_this_group ? error : std::hypot(error, result.error_of_count);
  };
  result.error = with_count(result.here.error);
  result.error_in_gap.push_back(result.error);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double gap = std::log2(points[i].bytes / std::max(1.0, points[i - 1].bytes));
    result.error_in_gap.push_back(with_count(std::hypot(result.here.error, error_per_octave_of_gap * gap)));
  }
  return result;
}

// Each by the formula's ratio.
MeasuredPlacement Network::Model::Group::carried_from(const MeasuredPlacement& there, Algorithm of) const {
  MeasuredPlacement result{placement_, there.points, there.error};
  const Group& other = model_.group(collective_, there.placement);
  for (CurvePoint& point : result.points) {
    // One algorithm for both: a change of choice between placements is no change of the machine.
    const Algorithm runs = of == Algorithm::automatic ? fastest(point.bytes, Talk::none) : of;
    const double before = other.formula(runs, point.bytes, Talk::none);
    if (before > 0) point.seconds *= formula(runs, point.bytes, Talk::none) / before;
  }
  never_falling(result.points);
  return result;
}

// Between points[above] and the one before. Where messages were timed what they make of sizes between the two is
// stretched to meet both: it bends where a token bucket is empty, or a protocol changes. Else straight, as a message's
// time is in its bytes.
double Network::Model::Group::between(const Samples& samples, Algorithm of, std::size_t above, double bytes) const {
  const CurvePoint &low = samples.here.points[above - 1], &high = samples.here.points[above];
  double part = (bytes - low.bytes) / (high.bytes - low.bytes);
  if (shaped_) {
    const double from = samples.formula[above - 1], to = samples.formula[above];
    if (to > from) part = std::clamp((formula(of, bytes) - from) / (to - from), 0.0, 1.0);
  }
  return std::lerp(low.seconds, high.seconds, part);
}

Estimate Network::Model::Group::from_samples(const Samples& samples, Algorithm of, double bytes) const {
  const std::vector<CurvePoint>& points = samples.here.points;
  if (bytes < points.front().bytes || bytes > points.back().bytes) return outside(samples, of, bytes);
  const auto above = std::ranges::lower_bound(points, bytes, {}, &CurvePoint::bytes);
  const auto below = above == points.begin() ? above : std::prev(above);
  const auto index = static_cast<std::size_t>(above - points.begin());
  Estimate result{Seconds{above == below ? above->seconds : between(samples, of, index, bytes)},
                  samples.error_in_gap[index], Provenance::interpolated};
  if (is_size(*above, bytes) || is_size(*below, bytes)) {
    result.relative_error = samples.error;
    if (samples.of_this_group) result.provenance = Provenance::measured;
  }
  if (samples.far) result.provenance = Provenance::estimated;
  return result;
}

// Before the first: the formula, scaled to meet it.
Estimate Network::Model::Group::outside(const Samples& samples, Algorithm of, double bytes) const {
  const std::vector<CurvePoint>& points = samples.here.points;
  const bool shorter = bytes < points.front().bytes;
  const CurvePoint& end = shorter ? points.front() : points.back();
  Estimate result{Seconds{end.seconds}, samples.error, Provenance::interpolated};
  if (!shorter) {
    result.time = Seconds{beyond(samples, of, bytes)};
  } else if (const double at_end = ends(samples, of).formula_of_first; at_end > 0) {
    result.time = Seconds{end.seconds * formula(of, bytes, Talk::none) / at_end};
  }
  if (is_size(end, bytes)) {
    if (samples.of_this_group) result.provenance = Provenance::measured;
  } else {
    const double octaves = std::abs(std::log2(std::max(1.0, bytes) / std::max(1.0, end.bytes)));
    result.relative_error = std::hypot(samples.here.error, error_per_octave_beyond * octaves);
    if (!samples.of_this_group) result.relative_error = std::hypot(result.relative_error, samples.error_of_count);
    if (octaves > 2) result.provenance = Provenance::estimated;
  }
  if (samples.far) result.provenance = Provenance::estimated;
  return result;
}

const Network::Model::Group::Ends& Network::Model::Group::ends(const Samples& samples, Algorithm of) const {
  return ends_[slot(of)].get([&] {
    constexpr double octave = 1.9;
    const std::vector<CurvePoint>& points = samples.here.points;
    const CurvePoint& last = points.back();
    Ends result{formula(of, points.front().bytes, Talk::none),
                formula(of, last.bytes, model_.gpus() ? Talk::none : Talk::in_protocol),
                {}};
    const auto before = std::find_if(points.rbegin(), points.rend(),
                                     [&](const CurvePoint& point) { return point.bytes * octave <= last.bytes; });
    // A choice that changed between the two tells no pace.
    const auto runs = [&](const CurvePoint& point) {
      return of == Algorithm::automatic ? fastest(point.bytes, Talk::none) : of;
    };
    if (before != points.rend() && runs(*before) == runs(last))
      result.pace = (last.seconds - before->seconds) / (last.bytes - before->bytes);
    return result;
  });
}

// Behind the longest sample: straight on, as long exchanges keep their wires busy, at the pace of the last octave. A
// start that the formula has too short, or several ends where it has one, would otherwise grow with the bytes. Two
// samples alone tell a pace badly where they are disturbed. So it stays between two others that know nothing of their
// difference, the formula's and that scaled to the last sample, and is their mean where no octave tells any. Where no
// messages were timed, the formula itself was read from collectives, and the pace stays near the scaled one; which it
// is where no octave tells any.
double Network::Model::Group::beyond(const Samples& samples, Algorithm of, double bytes) const {
  constexpr double most = 1.5;
  const CurvePoint& last = samples.here.points.back();
  const Ends& known = ends(samples, of);
  const double at_last = known.formula_of_last;
  if (!(at_last > 0)) return last.seconds;
  const double here = formula(of, bytes, model_.gpus() ? Talk::none : Talk::in_protocol);
  const double plain = (here - at_last) / (bytes - last.bytes);
  const double scaled = plain * last.seconds / at_last;
  const bool messages_timed = model_.point_to_point.measured(placement_.nodes == 1);
  double pace = messages_timed ? (plain + scaled) / 2 : scaled;
  if (known.pace)
    pace = messages_timed ? std::clamp(*known.pace, std::min(plain, scaled), std::max(plain, scaled))
                          : std::clamp(*known.pace, scaled / most, scaled * most);
  return last.seconds + pace * (bytes - last.bytes);
}

}  // namespace sibyl

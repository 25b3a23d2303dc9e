#include "netmodel/network_model.h"

#include <algorithm>
#include <cmath>
#include <variant>

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

// What a GPU library spends on any collective before its first byte moves (7 to 8 us on A100, 4 to 5 us on H100).
constexpr double usual_launch = 7e-6;

}  // namespace

Network::Model::Model(Topology machine, std::vector<PointToPointSample> messages, std::vector<CollectiveSample> timed,
                      Algorithm chosen)
    : topology(std::move(machine)),
      point_to_point_samples(std::move(messages)),
      collective_samples(std::move(timed)),
      algorithm(chosen),
      point_to_point(topology, point_to_point_samples),
      table(collective_samples) {
  if (gpus()) launch = usual_launch;
  if (!point_to_point.measured(true)) infer_device_link();
}

std::shared_ptr<Network::Model> Network::Model::with(Topology machine, std::vector<CollectiveSample> timed) const {
  auto model = std::make_shared<Model>(std::move(machine), point_to_point_samples, std::move(timed), algorithm);
  if (costs) model->use(costs->fabric());
  model->protocol = protocol;
  model->library = library;
  model->octaves_inside = octaves_inside;
  model->octaves_across = octaves_across;
  model->shared = shared;
  return model;
}

// Where collectives were timed inside a node but no message was, they tell what a device link gives. Small ones take
// launch + steps * latency, in steps of a ring (fitted over collectives and counts); the largest all-reduce of the
// largest group moves 2 (p - 1)/p m. Where switches add it may be theirs: there the largest all-gather tells, of (p -
// 1)/p m.
void Network::Model::infer_device_link() {
  double n = 0, s = 0, ss = 0, t = 0, st = 0;
  const MeasuredPlacement* largest = nullptr;
  const Collective around_a_ring =
      topology.spec().device_link.reduces ? Collective::all_gather : Collective::all_reduce;
  for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
    for (const MeasuredPlacement& measured : table.placements(kind, Algorithm::automatic)) {
      if (measured.placement.nodes != 1 || measured.points.size() < 2) continue;
      const double steps = (kind == Collective::all_reduce ? 2.0 : 1.0) * (measured.placement.size() - 1);
      const double smallest = measured.points.front().seconds;
      n += 1, s += steps, ss += steps * steps, t += smallest, st += steps * smallest;
      if (kind == around_a_ring && (largest == nullptr || largest->placement < measured.placement)) largest = &measured;
    }
  if (largest == nullptr || largest->placement.size() < 2) return;
  const double spread = n * ss - s * s;
  double latency = topology.path(0).latency.value();
  if (gpus() && spread > 0) latency = std::max(0.0, (n * st - s * t) / spread);
  // Without a launch, or where it would be negative, it is all latency.
  launch = gpus() ? std::max(0.0, (t - latency * s) / n) : 0.0;
  if (launch == 0.0) latency = st / ss;
  const CurvePoint &small = largest->points.front(), &large = largest->points.back();
  const double size = largest->placement.size();
  const double times = around_a_ring == Collective::all_reduce ? 2 : 1;
  const double moved = times * (size - 1) / size * (large.bytes - small.bytes);
  if (large.seconds <= small.seconds || moved <= 0) return;
  constexpr double read_as_ring_error = 0.20;
  point_to_point.set_device_link(Seconds{latency}, BytesPerSecond{moved / (large.seconds - small.seconds)},
                                 read_as_ring_error);
}

// GPU libraries choose among rings, trees and switches that add; sibyl::Communicator, between CPU ranks, has its own
// rule.
Algorithm Network::Model::fastest(Collective collective, double bytes, const GroupPlacement& placement,
                                  Talk talk) const {
  const auto whole = static_cast<std::int64_t>(std::min(bytes, 1e18));
  if (const Algorithm told = collective::choose(rules(), collective, whole, placement.size());
      told != Algorithm::automatic)
    return resolved(collective, told, bytes, placement);
  const bool as_nccl = library.library == Library::nccl || (gpus() && library.library != Library::sibyl);
  if (collective != Collective::all_reduce || !as_nccl)
    return collective::resolve(collective, Algorithm::automatic, whole, placement.size());
  Algorithm best = Algorithm::ring;
  double least = seconds(collective, best, bytes, placement, talk);
  const auto consider = [&](Algorithm other) {
    const double time = seconds(collective, other, bytes, placement, talk);
    if (time < least) best = other, least = time;
  };
  consider(Algorithm::tree);
  if (switches_add()) consider(Algorithm::in_network);
  return best;
}

bool Network::Model::by_rules() const {
  switch (library.library) {
    case Library::automatic: return false;
    case Library::sibyl: return gpus();
    case Library::nccl: return !gpus();
    default: return true;
  }
}

collective::Rules Network::Model::rules() const {
  return library.library == Library::table ? collective::Rules(library.table) : collective::rules_of(library.library);
}

CollectiveEstimate Network::Model::chosen_by_rules(Collective collective, double bytes,
                                                   const GroupPlacement& placement) const {
  const auto at = [&](double size) {
    const Algorithm runs = fastest(collective, size, placement);
    // Of the fastest by formula samples of some must not be asked beside formulas of others.
    return CollectiveEstimate{library.library == Library::nccl ? by_formula(collective, runs, size, placement)
                                                               : estimate(collective, runs, size, placement),
                              runs};
  };
  CollectiveEstimate result = at(bytes);
  for (const ChoiceRule& rule : rules()) {
    const auto last = static_cast<double>(collective::holds_up_to(rule, placement.size()));
    if (!collective::concerns(rule, collective, placement.size()) || last >= bytes) continue;
    result.time.time = std::max(result.time.time, at(last).time.time);
  }
  return result;
}

// Where nothing adds (and nothing that did was measured), in_network is a ring.
Algorithm Network::Model::resolved(Collective collective, Algorithm asked, double bytes,
                                   const GroupPlacement& placement) const {
  if (asked == Algorithm::in_network && !switches_add() && !table.has(collective, asked)) asked = Algorithm::ring;
  return collective::resolve(collective, asked, static_cast<std::int64_t>(bytes), placement.size());
}

bool Network::Model::fabric_answers(bool same_node) const {
  return costs && (!same_node || !std::holds_alternative<fabric::OneHub>(costs->fabric()->spec().inside));
}

// Links give what they are known to give elsewhere: docs/models/network.md.
void Network::Model::use(std::shared_ptr<const fabric::Fabric> fabric) {
  const double inside = point_to_point.device_link_rate() / topology.spec().device_link.bandwidth;
  costs = std::make_shared<const fabric::Costs>(
      std::move(fabric), fabric::Use{topology.spec().nodes, inside, PointToPoint::nic_efficiency, gpus()});
}

bool Network::Model::heeds_messages(const GroupPlacement& placement) const {
  const bool inside_known = placement.ranks_per_node == 1 || !fabric_answers(true) || point_to_point.measured(true);
  return placement.nodes > 1 && !costs->fabric()->spec().direct && point_to_point.measured(false) && inside_known;
}

std::optional<fabric::Compiled> Network::Model::by_links_alone(Collective collective, Algorithm runs,
                                                               const GroupPlacement& placement) const {
  const bool adds = runs == Algorithm::in_network && switches_add();
  if (placement.size() <= 1 || !fabric_answers(placement.nodes == 1) || adds || heeds_messages(placement))
    return std::nullopt;
  return costs->compiled(collective, runs, placement);
}

// Bytes stream through hosts, NICs and the links behind them; the slowest sets the pace. Messages showed what hosts and
// NICs take: they were timed between nodes that share a switch, as neighbours mostly do.
double Network::Model::on_the_fabric(const collective::Job& job, Algorithm runs, double by_links,
                                     const collective::ProtocolCost& cost, collective::Ways ways) const {
  if (!heeds_messages(job.placement)) return by_links;
  const collective::Wire ends(topology, point_to_point, cost, ways);
  return std::max(by_links, collective::seconds(job, runs, ends));
}

double Network::Model::uneven(Algorithm runs, double bytes, const GroupPlacement& placement,
                              const collective::Imbalance& imbalance) const {
  const collective::Job job{Collective::all_to_all, bytes, placement, imbalance};
  if (placement.size() <= 1 || !fabric_answers(placement.nodes == 1))
    return launch + collective::seconds(job, runs, collective::Wire(topology, point_to_point));
  const double by_links =
      costs->seconds(costs->schedule_of(job.collective, runs, placement, Algorithm::ring, imbalance), bytes);
  return launch + on_the_fabric(job, runs, by_links, {}, collective::Ways::both);
}

double Network::Model::on_the_wire(Collective collective, Algorithm runs, double bytes, const GroupPlacement& placement,
                                   const collective::ProtocolCost& cost, collective::Ways ways,
                                   const fabric::Compiled* line) const {
  if (line != nullptr) return line->seconds(bytes, cost);
  const collective::Job job{collective, bytes, placement};
  const collective::Wire wire(topology, point_to_point, cost, ways);
  if (placement.size() <= 1 || !fabric_answers(placement.nodes == 1)) return collective::seconds(job, runs, wire);
  if (runs != Algorithm::in_network || !switches_add())
    return on_the_fabric(job, runs, costs->seconds(collective, runs, bytes, placement, cost), cost, ways);
  // A fabric's own switches only pass on, but those of its nodes may add.
  if (placement.nodes == 1) return collective::seconds(job, runs, wire);
  const collective::Job share = collective::share_between_nodes(job);
  const auto by_ranks = [&](double size) {
    return costs->seconds(collective, Algorithm::tree, size, share.placement, cost);
  };
  return collective::in_network_seconds(job, wire, {by_ranks(0.0), by_ranks(share.bytes)});
}

// The formulas let all bytes of a tree stream behind the first chunk. GPU libraries wait for each chunk at every hop:
// with n chunks over a way of latency a and transfer t that is n a/h + h t/n more for h hops, 2 sqrt(a t) with the best
// n. No more than half of the latency was seen (docs/models/network.md).
double Network::Model::waits(Collective collective, Algorithm runs, double bytes, const GroupPlacement& placement,
                             const collective::ProtocolCost& cost, const fabric::Compiled* line) const {
  const bool tree = runs == Algorithm::tree || (runs == Algorithm::in_network && !topology.spec().switches_reduce);
  if (collective != Collective::all_reduce || !tree || placement.nodes == 1 || !gpus()) return 0.0;
  const auto time = [&](double size) {
    return on_the_wire(collective, runs, size, placement, cost, collective::Ways::both, line);
  };
  const double latency = time(0.0), transfer = time(bytes) - latency;
  return std::min(2 * std::sqrt(latency * std::max(0.0, transfer)), latency / 2);
}

std::span<const Protocol> Network::Model::protocols(Collective collective, Algorithm runs) const {
  if (point_to_point.measured(true) || point_to_point.measured(false)) return {};
  if (by_rules() && library.library != Library::nccl) return {};
  return collective::protocols_of(collective, runs, topology.spec().device_link.kind);
}

double Network::Model::spoken(Collective collective, Algorithm runs, double bytes, const GroupPlacement& placement,
                              Protocol speaks, collective::Ways ways, const fabric::Compiled* line) const {
  collective::ProtocolCost cost;
  if (speaks != Protocol::automatic)
    cost = collective::cost_of(speaks, collective, runs, topology.spec().device_link.kind, placement);
  return cost.launch + on_the_wire(collective, runs, bytes, placement, cost, ways, line) +
         waits(collective, runs, bytes, placement, cost, line);
}

std::pair<Protocol, double> Network::Model::quickest(Collective collective, Algorithm runs, double bytes,
                                                     const GroupPlacement& placement) const {
  const std::span<const Protocol> known = protocols(collective, runs);
  const bool told = std::ranges::find(known, protocol) != known.end();
  const std::optional<fabric::Compiled> line = by_links_alone(collective, runs, placement);
  const auto time_in = [&](Protocol speaks) {
    return spoken(collective, runs, bytes, placement, speaks, collective::Ways::both, line ? &*line : nullptr);
  };
  std::pair best{Protocol::automatic, 0.0};
  for (const Protocol speaks : known) {
    if (told && speaks != protocol) continue;
    const double time = time_in(speaks);
    if (best.first == Protocol::automatic || time < best.second) best = {speaks, time};
  }
  if (known.empty()) best.second = time_in(Protocol::automatic);
  return best;
}

double Network::Model::seconds(Collective collective, Algorithm runs, double bytes, const GroupPlacement& placement,
                               Talk talk) const {
  return talk == Talk::none ? spoken(collective, runs, bytes, placement, Protocol::automatic, collective::Ways::one)
                            : quickest(collective, runs, bytes, placement).second;
}

double Network::Model::formula(Collective collective, Algorithm chosen, double bytes, const GroupPlacement& placement,
                               Talk talk) const {
  const auto time = [&](Algorithm runs, double size) {
    return launch + seconds(collective, runs, size, placement, talk);
  };
  if (chosen != Algorithm::automatic) return time(chosen, bytes);
  double result = time(fastest(collective, bytes, placement, talk), bytes);
  if (collective != Collective::all_reduce) return result;
  // A choice by size alone may be late: where the next algorithm is faster, the time before the change is held.
  if (!gpus())
    for (const ChoiceRule& rule : collective::sibyl_rules()) {
      const auto size = static_cast<double>(collective::holds_up_to(rule, placement.size()));
      if (collective::concerns(rule, collective, placement.size()) && size < bytes)
        result = std::max(result, time(fastest(collective, size, placement, talk), size));
    }
  return result;
}

// Behind the longest sample: straight on, as long exchanges keep their wires busy, at the pace of the last octave. A
// start that the formula has too short, or several ends where it has one, would otherwise grow with the bytes. Two
// samples alone tell a pace badly where they are disturbed. So it stays between two others that know nothing of their
// difference: the formula's, and that scaled to the last sample. Where no messages were timed, the formula itself was
// read from collectives, and the pace stays near the scaled one; which it is where no octave tells any.
double Network::Model::beyond(const MeasuredPlacement& measured, Collective collective, Algorithm chosen,
                              double bytes) const {
  constexpr double octave = 1.9, most = 1.5;
  const std::vector<CurvePoint>& points = measured.points;
  const CurvePoint& last = points.back();
  if (bytes <= last.bytes) return last.seconds;
  const auto by_formula = [&](double size) {
    return formula(collective, chosen, size, measured.placement, gpus() ? Talk::none : Talk::in_protocol);
  };
  const double at_last = by_formula(last.bytes);
  if (!(at_last > 0)) return last.seconds;
  const double plain = (by_formula(bytes) - at_last) / (bytes - last.bytes);
  const double scaled = plain * last.seconds / at_last;
  const auto before = std::find_if(points.rbegin(), points.rend(),
                                   [&](const CurvePoint& point) { return point.bytes * octave <= last.bytes; });
  // A choice that changed between the two tells no pace.
  const auto runs = [&](const CurvePoint& point) {
    return chosen == Algorithm::automatic ? fastest(collective, point.bytes, measured.placement, Talk::none) : chosen;
  };
  double pace = scaled;
  if (before != points.rend() && runs(*before) == runs(last)) {
    const double of_octave = (last.seconds - before->seconds) / (last.bytes - before->bytes);
    pace = point_to_point.measured(measured.placement.nodes == 1)
               ? std::clamp(of_octave, std::min(plain, scaled), std::max(plain, scaled))
               : std::clamp(of_octave, scaled / most, scaled * most);
  }
  return last.seconds + pace * (bytes - last.bytes);
}

// Inside the sampled sizes: between neighbours. Before the first: the formula, scaled to meet it.
Estimate Network::Model::from_points(const MeasuredPlacement& measured, Collective collective, Algorithm chosen,
                                     double bytes) const {
  const std::vector<CurvePoint>& points = measured.points;
  const auto after = std::ranges::lower_bound(points, bytes, {}, &CurvePoint::bytes);
  const CurvePoint& above = after == points.end() ? points.back() : *after;
  const CurvePoint& below = after == points.begin() ? points.front() : *std::prev(after);
  const auto near = [&](const CurvePoint& point) { return std::abs(point.bytes - bytes) <= 0.02 * point.bytes; };
  Estimate result{Seconds{interpolated(points, bytes)}, measured.error, Provenance::interpolated};
  if (bytes < points.front().bytes || bytes > points.back().bytes) {
    const bool shorter = bytes < points.front().bytes;
    const CurvePoint& end = shorter ? points.front() : points.back();
    if (shorter) {
      const double at_end = formula(collective, chosen, end.bytes, measured.placement, Talk::none);
      const double here = formula(collective, chosen, bytes, measured.placement, Talk::none);
      result.time = Seconds{at_end > 0 ? end.seconds * here / at_end : end.seconds};
    } else {
      result.time = Seconds{beyond(measured, collective, chosen, bytes)};
    }
    if (near(end)) {
      result.provenance = Provenance::measured;
      return result;
    }
    const double octaves = std::abs(std::log2(std::max(1.0, bytes) / std::max(1.0, end.bytes)));
    result.relative_error = std::hypot(measured.error, error_per_octave_beyond * octaves);
    if (octaves > 2) result.provenance = Provenance::estimated;
    return result;
  }
  if (near(above) || near(below)) {
    result.provenance = Provenance::measured;
    return result;
  }
  const double gap = std::log2(above.bytes / std::max(1.0, below.bytes));
  result.relative_error = std::hypot(measured.error, error_per_octave_of_gap * gap);
  return result;
}

// Measured times of one placement, each carried by the formula's ratio to another.
MeasuredPlacement Network::Model::carried(const MeasuredPlacement& from, Collective collective, Algorithm chosen,
                                          const GroupPlacement& to) const {
  MeasuredPlacement result{to, from.points, from.error};
  for (CurvePoint& point : result.points) {
    // One algorithm for both: a change of choice between placements is no change of the machine.
    const Algorithm runs = chosen == Algorithm::automatic ? fastest(collective, point.bytes, to, Talk::none) : chosen;
    const double here = formula(collective, runs, point.bytes, from.placement, Talk::none);
    if (here > 0) point.seconds *= formula(collective, runs, point.bytes, to, Talk::none) / here;
  }
  never_falling(result.points);
  return result;
}

// Beyond what was measured of the communicator's own choice it runs one algorithm, of which there may be samples: as
// long ones, or of another than it chose last.
Algorithm Network::Model::known_beyond(Collective collective, double bytes, const GroupPlacement& placement) const {
  const MeasuredPlacement* chosen = table.nearest(collective, Algorithm::automatic, placement);
  if (gpus() || chosen == nullptr || bytes <= chosen->points.back().bytes) return Algorithm::automatic;
  const Algorithm runs = fastest(collective, bytes, placement);
  const MeasuredPlacement* own = table.nearest(collective, runs, placement);
  if (own == nullptr || own->placement != chosen->placement) return Algorithm::automatic;
  const bool chosen_last = runs == fastest(collective, chosen->points.back().bytes, chosen->placement);
  return chosen_last && own->points.back().bytes < chosen->points.back().bytes ? Algorithm::automatic : runs;
}

Estimate Network::Model::estimate(Collective collective, Algorithm chosen, double bytes,
                                  const GroupPlacement& placement) const {
  if (chosen == Algorithm::automatic) chosen = known_beyond(collective, bytes, placement);
  if (const MeasuredPlacement* nearest = table.nearest(collective, chosen, placement)) {
    if (nearest->placement == placement) return from_points(*nearest, collective, chosen, bytes);
    if (const auto around = table.around(collective, chosen, placement)) {
      const auto& [fewer, more] = *around;
      Estimate result = from_points(between_counts(*fewer, *more, placement.ranks_per_node), collective, chosen, bytes);
      result.relative_error = std::hypot(result.relative_error, error_between_counts);
      if (result.provenance == Provenance::measured) result.provenance = Provenance::interpolated;
      return result;
    }
    Estimate result = from_points(carried(*nearest, collective, chosen, placement), collective, chosen, bytes);
    const double octaves = distance(nearest->placement, placement);
    result.relative_error = std::hypot(result.relative_error, error_per_octave_of_count * std::max(1.0, octaves));
    if (result.provenance == Provenance::measured) result.provenance = Provenance::interpolated;
    if (octaves > 2) result.provenance = Provenance::estimated;
    return result;
  }
  return by_formula(collective, chosen, bytes, placement);
}

Estimate Network::Model::by_formula(Collective collective, Algorithm chosen, double bytes,
                                    const GroupPlacement& placement) const {
  const double across = placement.nodes > 1 ? point_to_point.error({topology.span(placement.nodes), 1}) : 0.0;
  const double inside = placement.ranks_per_node > 1 ? point_to_point.error({0, 1}) : 0.0;
  const double ramp = gpus() && placement.nodes > 1 && bytes < gpu_full_rate_bytes ? error_below_full_rate : 0.0;
  return {Seconds{formula(collective, chosen, bytes, placement)},
          std::hypot(std::max(across, inside), error_of_formula, ramp), Provenance::estimated};
}

bool Network::Model::any(Collective collective) const {
  return std::ranges::any_of(chosen_where_measured, [&](Algorithm known) { return table.has(collective, known); });
}

void Network::Model::take_collectives(const Model& from, Talk talk) {
  collective_samples = from.collective_samples;
  for (CollectiveSample& sample : collective_samples) {
    const double bytes = sample.bytes.value();
    // One algorithm for both, as in carried().
    const Algorithm runs = sample.algorithm == Algorithm::automatic
                               ? from.fastest(sample.collective, bytes, sample.placement, talk)
                               : sample.algorithm;
    const double there = from.formula(sample.collective, runs, bytes, sample.placement, talk);
    if (there > 0) sample.time *= formula(sample.collective, runs, bytes, sample.placement, talk) / there;
  }
  table = CollectiveTable(collective_samples);
}

}  // namespace sibyl

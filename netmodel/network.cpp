#include "netmodel/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "netmodel/collective/algorithms.h"
#include "netmodel/collective_table.h"
#include "netmodel/point_to_point.h"
#include "netmodel/topology.h"

namespace sibyl {
namespace {

constexpr std::array<std::pair<Collective, std::string_view>, 7> collective_names{
    {{Collective::all_reduce, "all_reduce"},
     {Collective::reduce_scatter, "reduce_scatter"},
     {Collective::all_gather, "all_gather"},
     {Collective::broadcast, "broadcast"},
     {Collective::reduce, "reduce"},
     {Collective::all_to_all, "all_to_all"},
     {Collective::send_receive, "send_receive"}}};

constexpr std::array<std::pair<Algorithm, std::string_view>, 7> algorithm_names{
    {{Algorithm::automatic, "automatic"},
     {Algorithm::ring, "ring"},
     {Algorithm::recursive_doubling, "recursive_doubling"},
     {Algorithm::rabenseifner, "rabenseifner"},
     {Algorithm::tree, "tree"},
     {Algorithm::hierarchical, "hierarchical"},
     {Algorithm::gloo, "gloo"}}};

// Errors (one standard deviation, relative) that no sample tells: see docs/models/network.md.
constexpr double error_per_octave_of_gap = 0.02;     // interpolating between sizes
constexpr double error_per_octave_beyond = 0.05;     // beyond the sampled sizes
constexpr double error_per_octave_of_count = 0.10;   // carried to another placement
constexpr double error_per_octave_of_change = 0.10;  // carried to links twice as fast
constexpr double error_of_formula = 0.15;            // beside that of the point-to-point times
// GPU libraries between nodes reach their full rate only with messages longer than this; below, formulas come out too
// fast.
constexpr double gpu_full_rate_bytes = 128.0 * 1024 * 1024;
constexpr double error_below_full_rate = 0.40;

// What a GPU library spends on any collective before its first byte moves (7 to 8 us on A100, 4 to 5 us on H100).
constexpr double usual_launch = 7e-6;

}  // namespace

std::string_view to_string(Collective collective) {
  for (const auto& [known, name] : collective_names)
    if (known == collective) return name;
  return "unknown";
}

std::string_view to_string(Algorithm algorithm) {
  for (const auto& [known, name] : algorithm_names)
    if (known == algorithm) return name;
  return "unknown";
}

Result<Algorithm> parse_algorithm(std::string_view text) {
  for (const auto& [algorithm, name] : algorithm_names)
    if (name == text) return algorithm;
  return fail(fmt::format("unknown collective algorithm '{}'", text), {},
              "automatic, ring, recursive_doubling, rabenseifner, tree or hierarchical");
}

struct Network::Model {
  Model(Topology machine, std::vector<PointToPointSample> messages, std::vector<CollectiveSample> timed,
        Algorithm chosen);

  [[nodiscard]] double formula(Collective collective, Algorithm algorithm, double bytes,
                               const GroupPlacement& placement) const;
  [[nodiscard]] Algorithm fastest(Collective collective, double bytes, const GroupPlacement& placement) const;
  [[nodiscard]] Estimate estimate(Collective collective, Algorithm algorithm, double bytes,
                                  const GroupPlacement& placement) const;
  [[nodiscard]] Estimate from_points(const MeasuredPlacement& points, Collective collective, Algorithm algorithm,
                                     double bytes) const;
  [[nodiscard]] MeasuredPlacement carried(const MeasuredPlacement& from, Collective collective, Algorithm algorithm,
                                          const GroupPlacement& to) const;
  [[nodiscard]] bool any(Collective collective) const;
  [[nodiscard]] bool gpus() const { return topology.spec().device_link.kind != LinkKind::shared_memory; }
  void infer_device_link();
  // Samples taken on `from`, carried to this machine.
  void take_collectives(const Model& from);

  Topology topology;
  std::vector<PointToPointSample> point_to_point_samples;
  std::vector<CollectiveSample> collective_samples;
  Algorithm algorithm;
  PointToPoint point_to_point;
  CollectiveTable table;
  double launch = 0.0;
  // By how much links differ from those that were measured; 0 but for what-ifs.
  double octaves_inside = 0.0, octaves_across = 0.0;
};

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

// Where collectives were timed inside a node but no message was, they tell what a device link gives. Small ones take
// launch + steps * latency, in steps of a ring (fitted over collectives and counts); the largest all-reduce of the
// largest group moves 2 (p - 1)/p m.
void Network::Model::infer_device_link() {
  double n = 0, s = 0, ss = 0, t = 0, st = 0;
  const MeasuredPlacement* largest = nullptr;
  for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
    for (const MeasuredPlacement& measured : table.placements(kind, Algorithm::automatic)) {
      if (measured.placement.nodes != 1 || measured.points.size() < 2) continue;
      const double steps = (kind == Collective::all_reduce ? 2.0 : 1.0) * (measured.placement.size() - 1);
      const double smallest = measured.points.front().seconds;
      n += 1, s += steps, ss += steps * steps, t += smallest, st += steps * smallest;
      if (kind == Collective::all_reduce && (largest == nullptr || largest->placement < measured.placement))
        largest = &measured;
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
  const double moved = 2 * (size - 1) / size * (large.bytes - small.bytes);
  if (large.seconds <= small.seconds || moved <= 0) return;
  constexpr double read_as_ring_error = 0.20;
  point_to_point.set_device_link(Seconds{latency}, BytesPerSecond{moved / (large.seconds - small.seconds)},
                                 read_as_ring_error);
}

// GPU libraries choose among rings and trees; sibyl::Communicator, between CPU ranks, has its own rule.
Algorithm Network::Model::fastest(Collective collective, double bytes, const GroupPlacement& placement) const {
  if (collective != Collective::all_reduce || !gpus())
    return collective::resolve(collective, Algorithm::automatic, static_cast<std::int64_t>(bytes), placement.size());
  const collective::Wire wire(topology, point_to_point);
  const collective::Job job{collective, bytes, placement};
  return collective::tree_seconds(job, wire) < collective::ring_seconds(job, wire) ? Algorithm::tree : Algorithm::ring;
}

double Network::Model::formula(Collective collective, Algorithm chosen, double bytes,
                               const GroupPlacement& placement) const {
  const auto time = [&](Algorithm runs, double size) {
    return launch + collective::seconds({collective, size, placement}, runs, {topology, point_to_point});
  };
  if (chosen != Algorithm::automatic) return time(chosen, bytes);
  double result = time(fastest(collective, bytes, placement), bytes);
  if (collective != Collective::all_reduce) return result;
  // A choice by size alone may be late: where the next algorithm is faster, the time before the change is held.
  if (!gpus())
    for (const std::int64_t change : collective::choice_changes(placement.size()))
      if (const auto size = static_cast<double>(change); size < bytes)
        result = std::max(result, time(fastest(collective, size, placement), size));
  return result;
}

// Inside the sampled sizes: between neighbours. Outside: the formula, scaled to meet the nearest sample.
Estimate Network::Model::from_points(const MeasuredPlacement& measured, Collective collective, Algorithm chosen,
                                     double bytes) const {
  const std::vector<CurvePoint>& points = measured.points;
  const auto after = std::ranges::lower_bound(points, bytes, {}, &CurvePoint::bytes);
  const CurvePoint& above = after == points.end() ? points.back() : *after;
  const CurvePoint& below = after == points.begin() ? points.front() : *std::prev(after);
  const auto near = [&](const CurvePoint& point) { return std::abs(point.bytes - bytes) <= 0.02 * point.bytes; };
  Estimate result{Seconds{log_interpolated(points, bytes)}, measured.error, Provenance::interpolated};
  if (bytes < points.front().bytes || bytes > points.back().bytes) {
    const CurvePoint& end = bytes < points.front().bytes ? points.front() : points.back();
    const double at_end = formula(collective, chosen, end.bytes, measured.placement);
    const double here = formula(collective, chosen, bytes, measured.placement);
    result.time = Seconds{at_end > 0 ? end.seconds * here / at_end : end.seconds};
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
    const Algorithm runs = chosen == Algorithm::automatic ? fastest(collective, point.bytes, to) : chosen;
    const double here = formula(collective, runs, point.bytes, from.placement);
    if (here > 0) point.seconds *= formula(collective, runs, point.bytes, to) / here;
  }
  never_falling(result.points);
  return result;
}

Estimate Network::Model::estimate(Collective collective, Algorithm chosen, double bytes,
                                  const GroupPlacement& placement) const {
  if (const MeasuredPlacement* nearest = table.nearest(collective, chosen, placement)) {
    if (nearest->placement == placement) return from_points(*nearest, collective, chosen, bytes);
    Estimate result = from_points(carried(*nearest, collective, chosen, placement), collective, chosen, bytes);
    const double octaves = distance(nearest->placement, placement);
    result.relative_error = std::hypot(result.relative_error, error_per_octave_of_count * std::max(1.0, octaves));
    if (result.provenance == Provenance::measured) result.provenance = Provenance::interpolated;
    if (octaves > 2) result.provenance = Provenance::estimated;
    return result;
  }
  const double across = placement.nodes > 1 ? point_to_point.error({topology.span(placement.nodes), 1}) : 0.0;
  const double inside = placement.ranks_per_node > 1 ? point_to_point.error({0, 1}) : 0.0;
  const double ramp = gpus() && placement.nodes > 1 && bytes < gpu_full_rate_bytes ? error_below_full_rate : 0.0;
  return {Seconds{formula(collective, chosen, bytes, placement)},
          std::hypot(std::max(across, inside), error_of_formula, ramp), Provenance::estimated};
}

bool Network::Model::any(Collective collective) const {
  return std::ranges::any_of(algorithm_names, [&](const auto& known) {
    return known.first != Algorithm::gloo && table.has(collective, known.first);
  });
}

void Network::Model::take_collectives(const Model& from) {
  collective_samples = from.collective_samples;
  for (CollectiveSample& sample : collective_samples) {
    const double bytes = sample.bytes.value();
    // One algorithm for both, as in carried().
    const Algorithm runs = sample.algorithm == Algorithm::automatic
                               ? from.fastest(sample.collective, bytes, sample.placement)
                               : sample.algorithm;
    const double there = from.formula(sample.collective, runs, bytes, sample.placement);
    if (there > 0) sample.time *= formula(sample.collective, runs, bytes, sample.placement) / there;
  }
  table = CollectiveTable(collective_samples);
}

namespace {

double ratio(double now, double before) { return before > 0 && now > 0 ? now / before : 1.0; }

// How the way to each level of distance differs between two topologies.
struct Difference {
  double latency = 1.0, bandwidth = 1.0;

  Difference(const Topology& now, const Topology& before, int level)
      : latency(ratio(now.path(level).latency.value(), before.path(level).latency.value())),
        bandwidth(ratio(now.path(level).bandwidth.value(), before.path(level).bandwidth.value())) {}
};

double octaves(double factor) { return std::abs(std::log2(factor)); }

double octaves_across(const Topology& now, const Topology& before) {
  double most = 0.0;
  for (int level = 1; level <= now.spec().levels; ++level) {
    const Difference way(now, before, level);
    const double all = ratio(now.node_bandwidth(level).value(), before.node_bandwidth(level).value());
    most = std::max({most, octaves(way.latency), octaves(way.bandwidth), octaves(all)});
  }
  return most;
}

// The shortest message of each kind tells the latency, what others take beyond it the rate.
std::vector<PointToPointSample> carried(std::vector<PointToPointSample> samples, const Difference& inside,
                                        const Difference& across) {
  std::map<std::pair<bool, int>, Seconds> latency;
  for (const PointToPointSample& s : samples) {
    const auto [least, is_new] = latency.try_emplace({s.same_node, s.pairs}, s.time);
    if (!is_new) least->second = std::min(least->second, s.time);
  }
  for (PointToPointSample& s : samples) {
    const Seconds least = latency.at({s.same_node, s.pairs});
    const Difference& way = s.same_node ? inside : across;
    s.time = least * way.latency + (s.time - least) / way.bandwidth;
  }
  return samples;
}

// What nobody measured is never called so.
Estimate on_other_links(Estimate estimate, double octaves_apart) {
  if (octaves_apart == 0.0) return estimate;
  estimate.relative_error = std::hypot(estimate.relative_error, error_per_octave_of_change * octaves_apart);
  estimate.provenance =
      octaves_apart > 2 ? Provenance::estimated : std::max(estimate.provenance, Provenance::interpolated);
  return estimate;
}

}  // namespace

Network::Network(Topology topology, std::vector<PointToPointSample> point_to_point,
                 std::vector<CollectiveSample> collectives, Algorithm algorithm)
    : model_(
          std::make_shared<Model>(std::move(topology), std::move(point_to_point), std::move(collectives), algorithm)) {}
Network::~Network() = default;

const Topology& Network::topology() const { return model_->topology; }

Result<Network> Network::resized(int nodes, int devices_per_node) const {
  SIBYL_TRY(Topology topology, model_->topology.resized(nodes, devices_per_node));
  auto model = std::make_shared<Model>(std::move(topology), model_->point_to_point_samples, model_->collective_samples,
                                       model_->algorithm);
  model->octaves_inside = model_->octaves_inside;
  model->octaves_across = model_->octaves_across;
  return Network(std::move(model));
}

Result<Network> Network::with_links(const TopologySpec& spec) const {
  SIBYL_TRY(Topology topology, Topology::make(spec));
  const Difference inside(topology, model_->topology, 0), across(topology, model_->topology, 1);
  auto model = std::make_shared<Model>(topology, carried(model_->point_to_point_samples, inside, across),
                                       std::vector<CollectiveSample>{}, model_->algorithm);
  model->launch = model_->launch;
  model->point_to_point.set_device_link(model_->point_to_point, inside.latency, inside.bandwidth);
  model->take_collectives(*model_);
  model->octaves_inside = model_->octaves_inside + std::max(octaves(inside.latency), octaves(inside.bandwidth));
  model->octaves_across = model_->octaves_across + octaves_across(topology, model_->topology);
  return Network(std::move(model));
}

Estimate Network::point_to_point(Bytes bytes, bool same_node, int pairs) const {
  // Those that leave a node spread over its NICs.
  const int ways = same_node ? 1 : std::max(1, model_->topology.spec().nics_per_node);
  return on_other_links(model_->point_to_point.time(bytes, {same_node ? 0 : 1, (std::max(1, pairs) + ways - 1) / ways}),
                        same_node ? model_->octaves_inside : model_->octaves_across);
}

CollectiveEstimate Network::collective(Collective collective, Bytes bytes, GroupPlacement placement,
                                       Algorithm asked) const {
  CollectiveEstimate result = measured_collective(collective, bytes, placement, asked);
  const double inside = placement.ranks_per_node > 1 ? model_->octaves_inside : 0.0;
  const double across = placement.nodes > 1 ? model_->octaves_across : 0.0;
  result.time = on_other_links(result.time, std::max(inside, across));
  return result;
}

CollectiveEstimate Network::measured_collective(Collective collective, Bytes bytes, GroupPlacement placement,
                                                Algorithm asked) const {
  const Model& model = *model_;
  const double size = std::max(0.0, bytes.value());
  if (placement.size() <= 1) return {{Seconds{0.0}, 0.0, Provenance::measured}, Algorithm::ring};
  if (asked == Algorithm::automatic) asked = model.algorithm;
  if (asked != Algorithm::automatic)
    asked = collective::resolve(collective, asked, static_cast<std::int64_t>(size), placement.size());
  if (asked != Algorithm::automatic) return {model.estimate(collective, asked, size, placement), asked};
  // The library's own choice, where it was measured; else the algorithm that is fastest.
  if (model.table.has(collective, asked) || !model.any(collective))
    return {model.estimate(collective, asked, size, placement), model.fastest(collective, size, placement)};
  std::optional<CollectiveEstimate> best;
  for (const auto& [candidate, name] : algorithm_names) {
    if (candidate == Algorithm::gloo || !model.table.has(collective, candidate)) continue;
    const CollectiveEstimate here{model.estimate(collective, candidate, size, placement), candidate};
    if (!best || here.time.time < best->time.time) best = here;
  }
  return *best;
}

}  // namespace sibyl

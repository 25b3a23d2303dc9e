#include "netmodel/network_model.h"

#include <algorithm>
#include <variant>

#include "netmodel/group.h"

namespace sibyl {
namespace {

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

collective::Rules Network::Model::rules() const {
  return library.library == Library::table ? collective::Rules(library.table) : collective::rules_of(library.library);
}

// Where nothing adds (and nothing that did was measured), in_network is a ring.
Algorithm Network::Model::resolved(Collective collective, Algorithm asked) const {
  if (asked == Algorithm::in_network && !switches_add() && !table.has(collective, asked)) asked = Algorithm::ring;
  return collective::resolve(collective, asked, 0, 1);
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

double Network::Model::uneven(Algorithm runs, double bytes, const GroupPlacement& placement,
                              const collective::Imbalance& imbalance) const {
  const collective::Job job{Collective::all_to_all, bytes, placement, imbalance};
  const auto by_messages = [&] {
    return collective::seconds(job, runs, collective::Wire(topology, point_to_point)).value();
  };
  if (placement.size() <= 1 || !fabric_answers(placement.nodes == 1)) return launch + by_messages();
  const double by_links =
      costs->seconds(costs->schedule_of(job.collective, runs, placement, Algorithm::ring, imbalance), bytes);
  return launch + (heeds_messages(placement) ? std::max(by_links, by_messages()) : by_links);
}

std::span<const Protocol> Network::Model::protocols(Collective collective, Algorithm runs) const {
  if (point_to_point.measured(true) || point_to_point.measured(false)) return {};
  if (by_rules() && library.library != Library::nccl) return {};
  return collective::protocols_of(collective, runs, topology.spec().device_link.kind);
}

std::size_t Network::Model::GroupHash::operator()(const GroupKey& key) const {
  const auto bits = [](auto value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t mixed = bits(key.placement.nodes) * 0x9E3779B97F4A7C15ULL +
                              bits(key.placement.ranks_per_node) * 0xC2B2AE3D27D4EB4FULL +
                              (bits(key.placement.groups_per_node) << 3 | bits(key.collective)) * 0xD6E8FEB86659FD93ULL;
  return mixed >> 40;
}

const Network::Model::Group& Network::Model::group(Collective collective, const GroupPlacement& placement) const {
  return groups_.get({collective, placement}, [&] { return Group(*this, collective, placement); });
}

bool Network::Model::any(Collective collective) const {
  return std::ranges::any_of(chosen_where_measured, [&](Algorithm known) { return table.has(collective, known); });
}

void Network::Model::take_collectives(const Model& from, Talk talk) {
  std::vector<CollectiveSample> taken = from.collective_samples;
  for (CollectiveSample& sample : taken) {
    const double bytes = sample.bytes.value();
    const Group& there = from.group(sample.collective, sample.placement);
    // One algorithm for both: a change of choice between machines is none of their links.
    const Algorithm runs = sample.algorithm == Algorithm::automatic ? there.fastest(bytes, talk) : sample.algorithm;
    const double before = there.formula(runs, bytes, talk);
    if (before > 0) sample.time *= group(sample.collective, sample.placement).formula(runs, bytes, talk) / before;
  }
  collective_samples = std::move(taken);
  table = CollectiveTable(collective_samples);
  groups_.clear();
}

}  // namespace sibyl

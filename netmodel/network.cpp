#include "netmodel/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "netmodel/explain.h"
#include "netmodel/group.h"
#include "netmodel/network_model.h"

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

constexpr std::array<std::pair<Algorithm, std::string_view>, 15> algorithm_names{
    {{Algorithm::automatic, "automatic"},
     {Algorithm::ring, "ring"},
     {Algorithm::bidirectional_ring, "bidirectional_ring"},
     {Algorithm::bruck, "bruck"},
     {Algorithm::halving_doubling, "halving_doubling"},
     {Algorithm::binomial, "binomial"},
     {Algorithm::linear, "linear"},
     {Algorithm::pairwise, "pairwise"},
     {Algorithm::recursive_doubling, "recursive_doubling"},
     {Algorithm::rabenseifner, "rabenseifner"},
     {Algorithm::tree, "tree"},
     {Algorithm::hierarchical, "hierarchical"},
     {Algorithm::multi_dimensional, "multi_dimensional"},
     {Algorithm::in_network, "in_network"},
     {Algorithm::gloo, "gloo"}}};

constexpr std::array<std::pair<Protocol, std::string_view>, 4> protocol_names{{{Protocol::automatic, "automatic"},
                                                                               {Protocol::ll, "LL"},
                                                                               {Protocol::ll128, "LL128"},
                                                                               {Protocol::simple, "Simple"}}};

constexpr std::array<std::pair<Nearness, std::string_view>, 4> nearness_names{{{Nearness::unknown, "unknown"},
                                                                               {Nearness::memory, "memory"},
                                                                               {Nearness::socket, "socket"},
                                                                               {Nearness::node, "node"}}};

// Error (one standard deviation, relative) of links twice as fast as those that were measured.
constexpr double error_per_octave_of_change = 0.10;
// Of a protocol that was not measured, carried from what the library chose.
constexpr double error_of_protocol = 0.10;

}  // namespace

std::string_view to_string(Collective collective) {
  for (const auto& [known, name] : collective_names)
    if (known == collective) return name;
  return "unknown";
}

Result<Collective> parse_collective(std::string_view text) {
  for (const auto& [collective, name] : collective_names)
    if (name == text) return collective;
  return fail(fmt::format("no collective is called '{}'", text), {},
              "all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all or send_receive");
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
              "automatic, ring, bidirectional_ring, bruck, halving_doubling, binomial, linear, pairwise, "
              "recursive_doubling, rabenseifner, tree, hierarchical, multi_dimensional or in_network");
}

std::string_view to_string(Protocol protocol) {
  for (const auto& [known, name] : protocol_names)
    if (known == protocol) return name;
  return "unknown";
}

std::string_view to_string(Nearness nearness) {
  for (const auto& [known, name] : nearness_names)
    if (known == nearness) return name;
  return "unknown";
}

Result<Nearness> parse_nearness(std::string_view text) {
  for (const auto& [nearness, name] : nearness_names)
    if (name == text) return nearness;
  return fail(fmt::format("two ranks cannot have '{}' in common", text), {}, "unknown, memory, socket or node");
}

Result<Protocol> parse_protocol(std::string_view text) {
  for (const auto& [protocol, name] : protocol_names)
    if (name == text) return protocol;
  return fail(fmt::format("unknown protocol '{}'", text), {}, "automatic, LL, LL128 or Simple");
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

// Of what others leave of a NIC: what a fabric's links pass, NICs' cables among them, of which others use `background`.
double passed(const TopologySpec& spec, double background) {
  return std::min(1.0, (1.0 - background) / (1.0 - spec.nic_background));
}

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
  std::map<std::tuple<bool, bool, int>, Seconds> latency;
  for (const PointToPointSample& s : samples) {
    const auto [least, is_new] = latency.try_emplace({s.same_node, s.both_ways, s.pairs}, s.time);
    if (!is_new) least->second = std::min(least->second, s.time);
  }
  for (PointToPointSample& s : samples) {
    const Seconds least = latency.at({s.same_node, s.both_ways, s.pairs});
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

Result<Network> Network::on_fabric(const TopologySpec& spec, const fabric::FabricSpec& shape,
                                   std::vector<PointToPointSample> point_to_point,
                                   std::vector<CollectiveSample> collectives, Algorithm algorithm) {
  SIBYL_TRY(Topology topology, Topology::make(spec));
  SIBYL_TRY(fabric::Fabric fabric, fabric::Fabric::make(spec, shape));
  auto model =
      std::make_shared<Model>(std::move(topology), std::move(point_to_point), std::move(collectives), algorithm);
  model->use(std::make_shared<const fabric::Fabric>(std::move(fabric)));
  return Network(std::move(model));
}

const Topology& Network::topology() const { return model_->topology; }

const fabric::Fabric* Network::links() const { return model_->costs ? model_->costs->fabric().get() : nullptr; }

const std::vector<PointToPointSample>& Network::messages() const { return model_->point_to_point_samples; }

const std::vector<CollectiveSample>& Network::collectives() const { return model_->collective_samples; }

Result<Network> Network::resized(int nodes, int devices_per_node) const {
  SIBYL_TRY(Topology topology, model_->topology.resized(nodes, devices_per_node));
  if (const fabric::Fabric* whole = links();
      whole != nullptr && (nodes > whole->nodes() || devices_per_node > whole->devices_per_node()))
    return fail(fmt::format("the fabric has room for {} nodes of {} devices, not for {} of {}", whole->nodes(),
                            whole->devices_per_node(), nodes, devices_per_node),
                "fabric", "describe a larger one in the cluster file");
  return Network(model_->with(std::move(topology), model_->collective_samples));
}

Result<std::shared_ptr<Network::Model>> Network::carried_to(const TopologySpec& spec,
                                                            const fabric::FabricSpec* shape) const {
  SIBYL_TRY(Topology topology, Topology::make(spec));
  const Difference inside(topology, model_->topology, 0);
  Difference across(topology, model_->topology, 1);
  std::shared_ptr<const fabric::Fabric> changed;
  double left = 1.0;  // of what a fabric's links passed: the topology does not say
  if (const fabric::Fabric* whole = links()) {
    // Of the counts only those of NICs can change here; a fabric in part use keeps its room.
    TopologySpec room = spec;
    room.devices_per_node = whole->devices_per_node();
    room.nodes = whole->nodes();
    SIBYL_TRY(fabric::Fabric made, fabric::Fabric::make(room, *shape));
    changed = std::make_shared<const fabric::Fabric>(std::move(made));
    left = passed(spec, shape->background) / passed(model_->topology.spec(), whole->spec().background);
  }
  across.bandwidth *= left;
  auto model = std::make_shared<Model>(topology, carried(model_->point_to_point_samples, inside, across),
                                       std::vector<CollectiveSample>{}, model_->algorithm);
  model->launch = model_->launch;
  model->protocol = model_->protocol;
  model->library = model_->library;
  model->point_to_point.set_device_link(model_->point_to_point, inside.latency, inside.bandwidth);
  if (changed) model->use(std::move(changed));
  model->take_collectives(*model_);
  model->octaves_inside = model_->octaves_inside + std::max(octaves(inside.latency), octaves(inside.bandwidth));
  model->octaves_across = model_->octaves_across + octaves_across(topology, model_->topology) + octaves(left);
  model->shared = model_->shared;
  return model;
}

Result<Network> Network::with_links(const TopologySpec& spec, std::optional<double> fabric_background) const {
  std::optional<fabric::FabricSpec> shape;
  if (links() != nullptr) shape = links()->spec();
  if (fabric_background) {
    if (!shape) return fail("there is no fabric whose links others could use", "fabric");
    shape->background = *fabric_background;
  }
  SIBYL_TRY(std::shared_ptr<Model> model, carried_to(spec, shape ? &*shape : nullptr));
  return Network(std::move(model));
}

Network Network::knowing(std::vector<CollectiveSample> collectives) const {
  return Network(model_->with(model_->topology, std::move(collectives)));
}

Result<Network> Network::uncontended() const {
  TopologySpec spec = model_->topology.spec();
  spec.device_link.background = spec.nic_background = 0.0;
  std::optional<fabric::FabricSpec> shape;
  if (links() != nullptr) shape = links()->spec();
  const bool others = spec != model_->topology.spec() || (shape && shape->background > 0);
  if (shape) shape->background = 0.0;
  auto model = std::make_shared<Model>(*model_);
  if (others) {
    SIBYL_TRY(model, carried_to(spec, shape ? &*shape : nullptr));
  }
  model->shared = false;
  return Network(std::move(model));
}

Network Network::speaking(Protocol protocol) const {
  if (protocol == model_->protocol) return *this;
  auto model = std::make_shared<Model>(*model_);
  model->protocol = protocol;
  model->take_collectives(*model_, Model::Talk::in_protocol);
  return Network(std::move(model));
}

Network Network::running(LibraryChoice library) const {
  auto model = std::make_shared<Model>(*model_);
  model->library = std::move(library);
  return Network(std::move(model));
}

Estimate Network::point_to_point(Bytes bytes, bool same_node, int pairs) const {
  if (!model_->shared) pairs = 1;
  if (model_->fabric_answers(same_node) && !model_->point_to_point.measured(same_node)) {
    const double seconds = model_->costs->message_seconds(bytes.value(), same_node, std::max(1, pairs));
    return on_other_links({Seconds{seconds}, PointToPoint::unmeasured_error, Provenance::estimated},
                          same_node ? model_->octaves_inside : model_->octaves_across);
  }
  // Those that leave a node spread over its NICs; so does one alone over a device's own, where it has several.
  const TopologySpec& spec = model_->topology.spec();
  const bool measured = model_->point_to_point.measured(same_node);
  const int ways = same_node ? 1 : std::max(1, spec.nics_per_node);
  const int parts = same_node || measured ? 1 : std::max(1, spec.nics_per_node / spec.devices_per_node);
  const int on_one = (std::max(1, pairs) * parts + ways - 1) / ways;
  return on_other_links(
      model_->point_to_point.time(bytes / static_cast<double>(parts), {same_node ? 0 : 1, static_cast<double>(on_one)}),
      same_node ? model_->octaves_inside : model_->octaves_across);
}

CollectiveEstimate Network::collective(Collective collective, Bytes bytes, GroupPlacement placement,
                                       Algorithm asked) const {
  if (!model_->shared) placement.groups_per_node = 1;
  if (placement.size() <= 1) return {{Seconds{0.0}, 0.0, Provenance::measured}, Algorithm::ring};
  return model_->answer(collective, std::max(0.0, bytes.value()), placement, asked);
}

// Made where its caller wants it: a copy of what was just written would cost a fifth of an answer.
CollectiveEstimate Network::Model::answer(Collective collective, double bytes, const GroupPlacement& placement,
                                          Algorithm asked) const {
  CollectiveEstimate result = group(collective, placement).answer(bytes, asked);
  const double inside = placement.ranks_per_node > 1 ? octaves_inside : 0.0;
  const double across = placement.nodes > 1 ? octaves_across : 0.0;
  if (const double apart = std::max(inside, across); apart > 0.0) result.time = on_other_links(result.time, apart);
  if (protocol != Protocol::automatic && result.time.provenance == Provenance::measured) {
    result.time.provenance = Provenance::interpolated;
    result.time.relative_error = std::hypot(result.time.relative_error, error_of_protocol);
  }
  return result;
}

CollectiveEstimate Network::uneven_all_to_all(Bytes bytes, GroupPlacement placement, double imbalance,
                                              Algorithm asked) const {
  CollectiveEstimate result = collective(Collective::all_to_all, bytes, placement, asked);
  if (!model_->shared) placement.groups_per_node = 1;
  imbalance = std::clamp(imbalance, 1.0, static_cast<double>(placement.size()));
  if (imbalance == 1.0) return result;
  const auto by_formula = [&](double busiest) {
    return model_->uneven(result.algorithm, std::max(0.0, bytes.value()), placement, {busiest});
  };
  if (const double even = by_formula(1.0); even > 0) result.time.time *= by_formula(imbalance) / even;
  result.time = on_other_links(result.time, octaves(imbalance));
  return result;
}

namespace {

// So many ranks of a node send out of it at once: of a ring or a tree one, where ranks of a node follow each other.
int leaving(Collective collective, Algorithm algorithm, const GroupPlacement& placement) {
  const bool halves = algorithm == Algorithm::halving_doubling && collective::halves_evenly(placement.size());
  const bool each = collective == Collective::all_to_all || algorithm == Algorithm::recursive_doubling ||
                    algorithm == Algorithm::rabenseifner || algorithm == Algorithm::hierarchical || halves;
  return each ? placement.ranks_per_node : 1;
}

}  // namespace

WireUse Network::wire_use(Collective collective, const CollectiveEstimate& answered, GroupPlacement placement) const {
  const Seconds time = answered.time.time;
  if (placement.size() <= 1 || time.value() <= 0) return {};
  const bool chosen_by_library = answered.algorithm != Algorithm::gloo && !model_->by_rules() &&
                                 model_->table.has(collective, Algorithm::automatic);
  const Algorithm runs = chosen_by_library ? Algorithm::automatic : answered.algorithm;
  const Seconds empty = this->collective(collective, Bytes{1}, placement, runs).time.time;
  return {placement.nodes > 1, std::clamp(1.0 - empty / time, 0.0, 1.0),
          placement.nodes > 1 ? flows(placement.groups_per_node * leaving(collective, answered.algorithm, placement))
                              : 1.0};
}

double Network::flows(int pairs) const { return model_->shared ? pairs : 1.0; }

}  // namespace sibyl

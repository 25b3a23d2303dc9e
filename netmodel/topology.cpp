#include "netmodel/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace sibyl {
namespace {

struct Link {
  double latency = 0.0;
  double bandwidth = 0.0;
};

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property, Link>;
using Vertex = Graph::vertex_descriptor;

constexpr std::array<std::pair<LinkKind, std::string_view>, 4> link_kinds{{{LinkKind::nvswitch, "nvswitch"},
                                                                           {LinkKind::nvlink_mesh, "nvlink mesh"},
                                                                           {LinkKind::pcie, "pcie"},
                                                                           {LinkKind::shared_memory, "shared memory"}}};

constexpr int most_in_a_node = 1 << 16;  // devices, or NICs: the graph holds each
// Within these, times of messages can be added and multiplied without end.
bool is_bandwidth(BytesPerSecond rate) { return rate.value() >= 1.0 && rate.value() <= 1e18; }
bool is_latency(Seconds time) { return time.value() >= 0.0 && time.value() <= 3600.0; }

Result<void> check(const TopologySpec& spec) {
  const std::array<std::pair<std::string_view, int>, 4> counts{{{"nodes", spec.nodes},
                                                                {"devices_per_node", spec.devices_per_node},
                                                                {"nics_per_node", spec.nics_per_node},
                                                                {"levels", spec.levels}}};
  for (const auto& [name, count] : counts)
    if (count < 1) return fail(fmt::format("{} is {}, but must be at least 1", name, count), "topology");
  if (spec.devices_per_node > most_in_a_node || spec.nics_per_node > most_in_a_node)
    return fail(fmt::format("a node has at most {} devices and as many NICs", most_in_a_node), "topology");
  if (spec.nodes > most_devices / spec.devices_per_node)
    return fail(
        fmt::format("{} nodes of {} devices are more than {} devices", spec.nodes, spec.devices_per_node, most_devices),
        "topology");
  if (spec.levels > 8) return fail(fmt::format("{} levels of switches: at most 8 are known", spec.levels), "topology");
  if (spec.nodes_per_switch < 0) return fail("nodes_per_switch must not be negative", "topology");
  if (!is_bandwidth(spec.device_link.bandwidth) || !is_bandwidth(spec.nic_bandwidth))
    return fail("a link's bandwidth must be from 1 to 1e18 B/s", "topology");
  if (!is_latency(spec.device_link.latency) || !is_latency(spec.nic_latency) || !is_latency(spec.switch_latency))
    return fail("a latency must be from 0 to 3600 s", "topology");
  if (!(spec.oversubscription >= 1.0 && spec.oversubscription <= 1e6))
    return fail("oversubscription must be from 1 to 1e6", "topology", "bandwidth down divided by bandwidth up");
  for (const double share : {spec.device_link.background, spec.nic_background})
    if (!(share >= 0.0 && share <= 0.99)) return fail("background must be from 0 to 0.99", "topology");
  if (spec.device_link.reduces && spec.device_link.kind != LinkKind::nvswitch)
    return fail(fmt::format("{} adds nothing that passes it", to_string(spec.device_link.kind)), "topology",
                "'reduces' is for the kind nvswitch");
  return {};
}

// The devices of one whole node, joined as the spec says; the far end of each level needs no more than one device.
std::vector<Vertex> add_node(Graph& graph, const TopologySpec& spec) {
  const auto devices_in_node = static_cast<std::size_t>(spec.devices_per_node);
  std::vector<Vertex> devices;
  for (std::size_t i = 0; i < devices_in_node; ++i) devices.push_back(add_vertex(graph));
  const double bandwidth = spec.device_link.left().value();
  const double latency = spec.device_link.latency.value();
  if (spec.device_link.kind == LinkKind::nvlink_mesh) {
    // A representative pair is enough: all pairs are alike.
    const double share = bandwidth / std::max(1, spec.devices_per_node - 1);
    for (std::size_t i = 1; i < devices_in_node; ++i) add_edge(devices[0], devices[i], Link{latency, share}, graph);
    return devices;
  }
  const Vertex hub = add_vertex(graph);
  for (Vertex device : devices) add_edge(device, hub, Link{latency / 2, bandwidth}, graph);
  return devices;
}

void add_nic(Graph& graph, const TopologySpec& spec, Vertex device, Vertex leaf) {
  const Vertex nic = add_vertex(graph);
  const bool through_device_link =
      spec.device_link.kind == LinkKind::pcie || spec.device_link.kind == LinkKind::shared_memory;
  const double own = spec.nic_left().value();
  const double bandwidth = through_device_link ? std::min(own, spec.device_link.left().value()) : own;
  add_edge(device, nic, Link{spec.nic_latency.value(), bandwidth}, graph);
  add_edge(nic, leaf, Link{spec.switch_latency.value() / 2, spec.nic_bandwidth.value()}, graph);
}

Path shortest(const Graph& graph, Vertex from, Vertex to) {
  std::vector<double> distance(num_vertices(graph));
  std::vector<Vertex> before(num_vertices(graph));
  dijkstra_shortest_paths(
      graph, from,
      boost::weight_map(get(&Link::latency, graph)).distance_map(distance.data()).predecessor_map(before.data()));
  Path path{Seconds{distance[to]}, BytesPerSecond{std::numeric_limits<double>::infinity()}, 0};
  for (Vertex at = to; at != from; at = before[at]) {
    const auto [edge, found] = boost::edge(before[at], at, graph);
    if (!found) break;
    path.bandwidth = std::min(path.bandwidth, BytesPerSecond{graph[edge].bandwidth});
    ++path.links;
  }
  return path;
}

}  // namespace

std::string_view to_string(LinkKind kind) {
  for (const auto& [known, name] : link_kinds)
    if (known == kind) return name;
  return "unknown";
}

Result<LinkKind> parse_link_kind(std::string_view text) {
  for (const auto& [kind, name] : link_kinds)
    if (name == text) return kind;
  return fail(fmt::format("unknown link kind '{}'", text), {}, "nvswitch, nvlink mesh, pcie or shared memory");
}

struct Topology::Structure {
  Graph graph;
  std::vector<Path> paths;  // by level
};

Topology::Topology(const TopologySpec& spec, std::shared_ptr<const Structure> structure)
    : spec_(spec), structure_(std::move(structure)) {}

Result<Topology> Topology::make(const TopologySpec& spec) {
  SIBYL_CHECK(check(spec));
  auto structure = std::make_shared<Structure>();
  Graph& graph = structure->graph;
  const std::vector<Vertex> devices = add_node(graph, spec);
  // Before there are NICs: messages of a node stay in it, even where two NICs and a switch would be the quicker way.
  structure->paths.push_back(devices.size() == 1 ? Path{spec.device_link.latency, spec.device_link.left(), 0}
                                                 : shortest(graph, devices.front(), devices.back()));

  // Upwards from the whole node: switch i joins what lies under it; an uplink carries at least one NIC's rate.
  std::vector<Vertex> switches;
  for (int level = 0; level < spec.levels; ++level) switches.push_back(add_vertex(graph));
  const double below = std::max(1, spec.nodes_per_switch) * spec.nics_per_node * spec.nic_bandwidth.value();
  const Link uplink{spec.switch_latency.value(), std::max(spec.nic_bandwidth.value(), below / spec.oversubscription)};
  for (std::size_t i = 1; i < switches.size(); ++i) add_edge(switches[i - 1], switches[i], uplink, graph);
  for (int i = 0; i < spec.nics_per_node; ++i)
    add_nic(graph, spec, devices[static_cast<std::size_t>(i) % devices.size()], switches[0]);

  // Downwards to one far device for each level.
  std::vector<Vertex> far;
  for (std::size_t level = 0; level < switches.size(); ++level) {
    Vertex above = switches[level];
    for (std::size_t down = 0; down < level; ++down) {
      const Vertex next = add_vertex(graph);
      add_edge(above, next, uplink, graph);
      above = next;
    }
    far.push_back(add_vertex(graph));
    add_nic(graph, spec, far.back(), above);
  }
  for (Vertex to : far) structure->paths.push_back(shortest(graph, devices.front(), to));
  return Topology(spec, std::move(structure));
}

Result<Topology> Topology::resized(int nodes, int devices_per_node) const {
  TopologySpec spec = spec_;
  spec.nodes = nodes;
  if (devices_per_node == spec_.devices_per_node && nodes >= 1) return Topology(spec, structure_);
  spec.devices_per_node = devices_per_node;
  return make(spec);
}

int Topology::span(int nodes) const {
  if (nodes <= 1) return 0;
  if (spec_.nodes_per_switch == 0) return 1;
  double room = spec_.nodes_per_switch;
  int level = 1;
  while (level < spec_.levels && room < nodes) {
    room *= spec_.nodes_per_switch;
    ++level;
  }
  return level;
}

const Path& Topology::path(int level) const {
  const auto last = structure_->paths.size() - 1;
  return structure_->paths[std::min(last, static_cast<std::size_t>(std::max(0, level)))];
}

std::vector<int> Topology::extents(int nodes) const {
  std::vector<int> result;
  int left = nodes;
  for (int level = 1; level < spec_.levels && spec_.nodes_per_switch > 1 && left > spec_.nodes_per_switch; ++level) {
    if (left % spec_.nodes_per_switch != 0) return {nodes};
    result.push_back(spec_.nodes_per_switch);
    left /= spec_.nodes_per_switch;
  }
  result.push_back(left);
  return result;
}

const Path& Topology::worst_path(const GroupPlacement& placement) const { return path(span(placement.nodes)); }

BytesPerSecond Topology::node_bandwidth(int level) const {
  const double narrowing = std::pow(spec_.oversubscription, std::max(0, level - 1));
  return spec_.nic_left() * (spec_.nics_per_node / narrowing);
}

int Topology::vertices() const { return static_cast<int>(num_vertices(structure_->graph)); }

}  // namespace sibyl

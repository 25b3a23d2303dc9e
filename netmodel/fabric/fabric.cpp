#include "netmodel/fabric/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sibyl::fabric {
namespace {

constexpr std::array<std::pair<Ecmp, std::string_view>, 3> ecmp_names{
    {{Ecmp::split, "split"}, {Ecmp::hash, "hash"}, {Ecmp::destination, "destination"}}};

Result<void> check(const TopologySpec& topology, const FabricSpec& spec) {
  if (!(spec.background >= 0.0 && spec.background <= 0.99)) return fail("background must be from 0 to 0.99");
  if (spec.direct && topology.devices_per_node != 1)
    return fail("without NICs the links end at devices, so a node has one device", {}, "give the cluster a nic");
  if (spec.direct && topology.nic_background > 0) return fail("there are no NICs that others could use");
  return {};
}

// Within these, times can be added and multiplied without end (as Topology asks of its links).
Result<void> check_links(const Graph& graph) {
  for (const Channel& channel : graph.channels())
    if (!(channel.bandwidth >= channel.links && channel.bandwidth <= 1e18 * channel.links))
      return fail("a link's bandwidth must be from 1 to 1e18 B/s");
  for (const Edge& edge : graph.edges())
    if (!(edge.latency >= 0.0 && edge.latency <= 3600.0)) return fail("a latency must be from 0 to 3600 s");
  return {};
}

}  // namespace

std::string_view to_string(Ecmp ecmp) {
  for (const auto& [known, name] : ecmp_names)
    if (known == ecmp) return name;
  return "unknown";
}

Result<Ecmp> parse_ecmp(std::string_view text) {
  for (const auto& [ecmp, name] : ecmp_names)
    if (name == text) return ecmp;
  return fail(fmt::format("unknown way of choosing among paths '{}'", text), {}, "split, hash or destination");
}

Result<Fabric> Fabric::make(const TopologySpec& topology, const FabricSpec& spec) {
  SIBYL_CHECK(check(topology, spec));
  Fabric fabric;
  fabric.spec_ = spec;
  fabric.devices_ = topology.devices_per_node;
  fabric.graph_ = Graph(topology.switch_latency.value());
  const Site site{topology.nodes,
                  spec.direct ? 1 : topology.nics_per_node,
                  topology.nic_bandwidth,
                  spec.link,
                  topology.oversubscription,
                  spec.ecmp,
                  spec.direct};
  SIBYL_TRY(fabric.network_,
            std::visit([&](const auto& shape) { return build(shape, site, fabric.graph_); }, spec.network));
  if (static_cast<double>(fabric.network_.nodes) * topology.devices_per_node > most_devices)
    return fail(fmt::format("a fabric has at most {} devices", most_devices));
  SIBYL_TRY(fabric.node_, Node::make(topology, spec.inside));
  const double inner_cables = static_cast<double>(fabric.node_.graph().edges().size()) / 2 * fabric.network_.nodes;
  if (!spec.direct && inner_cables > most_cables)
    return fail(fmt::format("a fabric has at most {:.0f} cables", most_cables));
  if (!spec.direct) fabric.add_insides();
  SIBYL_CHECK(check_links(fabric.graph_));
  return fabric;
}

// Copies the node to each place; its NICs are there already. Edges and channels keep their order, so a copy's number is
// that of the original and an offset.
void Fabric::add_insides() {
  const Graph& one = node_.graph();
  first_inside_ = static_cast<EdgeId>(graph_.edges().size());
  const auto nics = static_cast<std::size_t>(node_.nics());
  std::vector<VertexId> copy(one.vertices());
  for (int node = 0; node < network_.nodes; ++node) {
    for (VertexId v = 0; v < one.vertices(); ++v) {
      const Vertex& it = one.vertex(v);
      copy[v] = it.place == Place::nic
                    ? network_.terminals[static_cast<std::size_t>(node) * nics + static_cast<std::size_t>(it.index)]
                    : graph_.add(it.place, node, it.index, one.word(v));
    }
    const auto first_channel = static_cast<ChannelId>(graph_.channels().size());
    for (const Channel& channel : one.channels()) graph_.channel(channel.bandwidth, channel.reach, channel.links);
    for (std::size_t i = 0; i < one.edges().size(); i += 2) {
      const Edge &there = one.edges()[i], &back = one.edges()[i + 1];
      graph_.cable(copy[there.from], copy[there.to], there.latency, first_channel + there.channel,
                   first_channel + back.channel);
    }
  }
}

void Fabric::add_inside(int node, VertexId from, VertexId to, double share, std::vector<Step>& steps) const {
  const auto offset =
      static_cast<EdgeId>(first_inside_ + static_cast<std::size_t>(node) * node_.graph().edges().size());
  for (const Step& step : node_.way(from, to)) steps.push_back({offset + step.edge, share * step.share});
}

void Fabric::route(int from, int to, std::uint64_t key, std::vector<Step>& steps) const {
  if (from == to) return;
  const int node_a = from / devices_, node_b = to / devices_;
  if (spec_.direct)
    return walk(graph_, network_.routing, network_.terminals[static_cast<std::size_t>(node_a)],
                network_.terminals[static_cast<std::size_t>(node_b)], spec_.ecmp, key, 1.0, steps);
  const int a = from % devices_, b = to % devices_;
  if (node_a == node_b) return add_inside(node_a, static_cast<VertexId>(a), static_cast<VertexId>(b), 1.0, steps);
  const std::vector<int>& arrivals = node_.nics_of(b);
  const std::vector<int>& departures = network_.choose_rail ? arrivals : node_.nics_of(a);
  const auto nic = [&](int number) { return static_cast<VertexId>(devices_ + number); };
  const auto leg = [&](std::size_t i, double share) {
    const int out = departures[i % departures.size()], in = arrivals[i % arrivals.size()];
    const auto terminal = [&](int node, int number) {
      return network_.terminals[static_cast<std::size_t>(node) * static_cast<std::size_t>(node_.nics()) +
                                static_cast<std::size_t>(number)];
    };
    add_inside(node_a, static_cast<VertexId>(a), nic(out), share, steps);
    walk(graph_, network_.routing, terminal(node_a, out), terminal(node_b, in), spec_.ecmp, key, share, steps);
    add_inside(node_b, nic(in), static_cast<VertexId>(b), share, steps);
  };
  // Several NICs of one device: all of them, or one by chance.
  const std::size_t ways = std::max(departures.size(), arrivals.size());
  if (spec_.ecmp == Ecmp::split)
    for (std::size_t i = 0; i < ways; ++i) leg(i, 1.0 / static_cast<double>(ways));
  else
    leg(mixed(key ^ (static_cast<std::uint64_t>(from) << 32) ^ static_cast<std::uint64_t>(to)) % ways, 1.0);
}

double Fabric::latency(std::span<const Step> steps) const {
  double sum = 0.0;
  for (const Step& step : steps) sum += step.share * graph_.edges()[step.edge].latency;
  return sum;
}

std::vector<double> Fabric::capacities(double inside_efficiency, double outside_efficiency) const {
  std::vector<double> result;
  result.reserve(graph_.channels().size());
  for (const Channel& channel : graph_.channels()) {
    const double efficiency = channel.reach == Reach::inside ? inside_efficiency : outside_efficiency;
    const double ours = channel.reach == Reach::between ? 1.0 - spec_.background : 1.0;
    result.push_back(channel.bandwidth * efficiency * ours);
  }
  return result;
}

std::string Fabric::channel_name(ChannelId channel) const {
  const auto edge = std::ranges::find(graph_.edges(), channel, &Edge::channel);
  if (edge == graph_.edges().end()) return "?";
  const int alike = graph_.channels()[channel].links - 1;
  return fmt::format("{} -> {}{}", graph_.name(edge->from), graph_.name(edge->to),
                     alike > 0 ? fmt::format(" and {} alike", alike) : "");
}

}  // namespace sibyl::fabric

#include <fmt/format.h>

#include "netmodel/fabric/outside.h"

namespace sibyl::fabric {

LinkRate Site::between_routers() const {
  LinkRate result = link;
  if (result.bandwidth.value() <= 0) result.bandwidth = nic_bandwidth;
  return result;
}

Result<void> check_counts(std::initializer_list<std::pair<const char*, int>> counts) {
  for (const auto& [name, count] : counts)
    if (count < 1) return fail(fmt::format("{} is {}, but must be at least 1", name, count));
  return {};
}

Result<void> check_room(double room, const Site& site) {
  if (room < site.nodes)
    return fail(fmt::format("the fabric has room for {:.0f} nodes, but there are {}", room, site.nodes));
  if (room * site.nics > most_cables) return fail(fmt::format("a fabric has at most {:.0f} NICs", most_cables));
  return {};
}

Wiring add_node_routers(const Site& site, int nodes, Graph& graph, Routers& routers) {
  Wiring result;
  result.nodes = nodes;
  routers.count = nodes;
  routers.terminals_each = site.direct ? 0 : site.nics;
  routers.first = static_cast<VertexId>(graph.vertices());
  for (int node = 0; node < nodes; ++node)
    if (site.direct)
      result.terminals.push_back(graph.add(Place::device, node, 0, "device"));
    else
      graph.add(Place::network_switch, -1, node, "router");
  if (site.direct) return result;
  routers.first_terminal = static_cast<VertexId>(graph.vertices());
  for (int node = 0; node < nodes; ++node)
    for (int nic = 0; nic < site.nics; ++nic) result.terminals.push_back(graph.add(Place::nic, node, nic, "NIC"));
  for (std::size_t i = 0; i < result.terminals.size(); ++i) {
    const VertexId router = routers.first + static_cast<VertexId>(i / static_cast<std::size_t>(site.nics));
    const EdgeId up =
        graph.cable(result.terminals[i], router, {site.nic_bandwidth, Seconds{}, site.link.duplex}, Reach::between);
    routers.up.push_back(up);
    routers.down.push_back(up + 1);
  }
  return result;
}

void add_terminals(Routers& routers, Wiring& result, VertexId first, int count, int each, const Site& site,
                   Graph& graph) {
  routers = {first, static_cast<VertexId>(graph.vertices()), count, each, {}, {}};
  result.nodes = count * each / site.nics;
  for (int t = 0; t < count * each; ++t)
    result.terminals.push_back(graph.add(Place::nic, t / site.nics, t % site.nics, "NIC"));
  LinkRate link = site.link;
  link.bandwidth = site.nic_bandwidth;
  for (int t = 0; t < count * each; ++t) {
    const EdgeId up = graph.cable(result.terminals[static_cast<std::size_t>(t)],
                                  first + static_cast<VertexId>(t / each), link, Reach::between);
    routers.up.push_back(up);
    routers.down.push_back(up + 1);
  }
}

std::vector<std::int64_t> join_groups(int groups, int ports, const std::function<VertexId(int group, int port)>& owner,
                                      const LinkRate& link, Graph& graph) {
  std::vector<std::int64_t> edges(static_cast<std::size_t>(groups) * static_cast<std::size_t>(ports), -1);
  const int others = groups - 1;
  if (others < 1) return edges;
  const auto slot = [&](int group, int port) -> std::int64_t& {
    return edges[static_cast<std::size_t>(group) * static_cast<std::size_t>(ports) + static_cast<std::size_t>(port)];
  };
  for (int group = 0; group < groups; ++group)
    for (int port = 0; port < ports / others * others; ++port) {
      const int offset = port % others + 1, to = (group + offset) % groups;
      if (to < group) continue;
      // That group's port to here has the complement of the offset.
      const int back = port / others * others + groups - offset - 1;
      const EdgeId edge = graph.cable(owner(group, port), owner(to, back), link, Reach::between);
      slot(group, port) = edge;
      slot(to, back) = edge + 1;
    }
  return edges;
}

}  // namespace sibyl::fabric

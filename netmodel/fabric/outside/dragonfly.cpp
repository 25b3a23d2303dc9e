#include <fmt/format.h>

#include <cmath>

#include "netmodel/fabric/outside.h"

namespace sibyl::fabric {
namespace {

Result<void> check(const Dragonfly& shape, const Site& site) {
  SIBYL_CHECK(check_counts({{"groups", shape.groups},
                            {"routers", shape.routers},
                            {"hosts", shape.hosts},
                            {"global_links", shape.global_links}}));
  if (site.direct) return fail("a dragonfly needs NICs", {}, "give the cluster a nic");
  const double ports = static_cast<double>(shape.routers) * shape.global_links;
  if (shape.groups > 1 && ports < shape.groups - 1)
    return fail(fmt::format("a group has {:.0f} global links, too few for {} other groups", ports, shape.groups - 1));
  const double routers = static_cast<double>(shape.groups) * shape.routers;
  if (routers * shape.hosts > most_cables || routers * shape.routers > most_cables ||
      routers * shape.global_links > most_cables)
    return fail(fmt::format("a fabric has at most {:.0f} cables", most_cables));
  return check_room(std::floor(routers * shape.hosts / site.nics), site);
}

void add_routers(Routers& routers, Wiring& result, const Dragonfly& shape, const Site& site, Graph& graph) {
  routers = {static_cast<VertexId>(graph.vertices()), 0, shape.groups * shape.routers, shape.hosts, {}, {}};
  for (int i = 0; i < routers.count; ++i) graph.add(Place::network_switch, -1, i, "router");
  routers.first_terminal = static_cast<VertexId>(graph.vertices());
  LinkRate to_router = site.link;
  to_router.bandwidth = site.nic_bandwidth;
  for (int t = 0; t < routers.count * shape.hosts; ++t)
    result.terminals.push_back(graph.add(Place::nic, t / site.nics, t % site.nics, "NIC"));
  for (int t = 0; t < routers.count * shape.hosts; ++t) {
    const auto router = routers.first + static_cast<VertexId>(t / shape.hosts);
    const EdgeId up = graph.cable(result.terminals[static_cast<std::size_t>(t)], router, to_router, Reach::between);
    routers.up.push_back(up);
    routers.down.push_back(up + 1);
  }
}

void add_local(Minimal& rule, const Dragonfly& shape, const Site& site, Graph& graph) {
  const auto each = static_cast<std::size_t>(shape.routers);
  rule.local.assign(static_cast<std::size_t>(rule.routers.count) * each, -1);
  for (std::size_t group = 0; group < static_cast<std::size_t>(shape.groups); ++group)
    for (std::size_t a = 0; a < each; ++a)
      for (std::size_t b = a + 1; b < each; ++b) {
        const auto first = rule.routers.first + static_cast<VertexId>(group * each);
        const EdgeId edge = graph.cable(first + static_cast<VertexId>(a), first + static_cast<VertexId>(b),
                                        site.between_routers(), Reach::between);
        rule.local[(group * each + a) * each + b] = edge;
        rule.local[(group * each + b) * each + a] = edge + 1;
      }
}

// Port c (groups - 1) + o - 1 of a group is its c-th link to the group o further on; that one's port to here has the
// complement of o. Ports beyond the last full round of groups stay free.
void add_global(Minimal& rule, const Dragonfly& shape, const Site& site, Graph& graph) {
  const int ports = shape.routers * shape.global_links, others = shape.groups - 1;
  rule.global.assign(static_cast<std::size_t>(shape.groups) * static_cast<std::size_t>(ports), -1);
  if (others < 1) return;
  LinkRate link = shape.global_link;
  if (link.bandwidth.value() <= 0) link = site.between_routers();
  const auto router = [&](int group, int port) {
    return rule.routers.first + static_cast<VertexId>(group * shape.routers + port / shape.global_links);
  };
  const auto slot = [&](int group, int port) -> std::int64_t& {
    return rule
        .global[static_cast<std::size_t>(group) * static_cast<std::size_t>(ports) + static_cast<std::size_t>(port)];
  };
  for (int group = 0; group < shape.groups; ++group)
    for (int port = 0; port < ports / others * others; ++port) {
      const int offset = port % others + 1, to = (group + offset) % shape.groups;
      if (to < group) continue;
      const int back = port / others * others + shape.groups - offset - 1;
      const EdgeId edge = graph.cable(router(group, port), router(to, back), link, Reach::between);
      slot(group, port) = edge;
      slot(to, back) = edge + 1;
    }
}

}  // namespace

Result<Wiring> build(const Dragonfly& shape, const Site& site, Graph& graph) {
  SIBYL_CHECK(check(shape, site));
  Wiring result;
  Minimal rule;
  rule.groups = shape.groups;
  rule.routers_each = shape.routers;
  rule.global_each = shape.global_links;
  rule.valiant = shape.valiant;
  add_routers(rule.routers, result, shape, site, graph);
  result.nodes = shape.groups * shape.routers * shape.hosts / site.nics;
  add_local(rule, shape, site, graph);
  add_global(rule, shape, site, graph);
  result.routing = std::move(rule);
  return result;
}

}  // namespace sibyl::fabric

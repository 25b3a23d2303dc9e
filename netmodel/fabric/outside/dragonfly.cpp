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

}  // namespace

Result<Wiring> build(const Dragonfly& shape, const Site& site, Graph& graph) {
  SIBYL_CHECK(check(shape, site));
  Wiring result;
  Minimal rule;
  rule.groups = shape.groups;
  rule.routers_each = shape.routers;
  rule.global_each = shape.global_links;
  rule.valiant = shape.valiant;
  const auto first = static_cast<VertexId>(graph.vertices());
  const int routers = shape.groups * shape.routers;
  for (int i = 0; i < routers; ++i) graph.add(Place::network_switch, -1, i, "router");
  add_terminals(rule.routers, result, first, routers, shape.hosts, site, graph);
  add_local(rule, shape, site, graph);
  const auto router_of = [&](int group, int port) {
    return first + static_cast<VertexId>(group * shape.routers + port / shape.global_links);
  };
  rule.global =
      join_groups(shape.groups, shape.routers * shape.global_links, router_of,
                  shape.global_link.bandwidth.value() > 0 ? shape.global_link : site.between_routers(), graph);
  result.routing = std::move(rule);
  return result;
}

}  // namespace sibyl::fabric

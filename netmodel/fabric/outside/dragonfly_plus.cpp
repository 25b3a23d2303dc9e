// Dragonfly+: in each group leaves below spines, every leaf joined to every spine; groups are joined by their spines, as a
// dragonfly's are by their routers. A minimal way goes up to a spine with a link to the other group, over it, and down;
// in a group, up to any spine and down.
//
// Source: Shpiner, Haramaty, Eliad, Zdornov, Gafni, Zahavi, "Dragonfly+: low cost topology for scaling datacenters" (2017).
#include <fmt/format.h>

#include <cmath>

#include "netmodel/fabric/outside.h"

namespace sibyl::fabric {
namespace {

Result<void> check_plus(const DragonflyPlus& shape, const Site& site) {
  SIBYL_CHECK(check_counts({{"groups", shape.groups},
                            {"leaves", shape.leaves},
                            {"spines", shape.spines},
                            {"hosts", shape.hosts},
                            {"global_links", shape.global_links}}));
  if (site.direct) return fail("a dragonfly+ needs NICs", {}, "give the cluster a nic");
  const double groups = shape.groups, leaves = groups * shape.leaves, spines = groups * shape.spines;
  const double ports = static_cast<double>(shape.spines) * shape.global_links;
  if (shape.groups > 1 && ports < groups - 1)
    return fail(
        fmt::format("a group has {:.0f} global links, too few for {:.0f} other groups", ports, groups - 1));
  if (leaves * shape.hosts > most_cables || leaves * shape.spines > most_cables || spines * shape.global_links > most_cables)
    return fail(fmt::format("a fabric has at most {:.0f} cables", most_cables));
  return check_room(std::floor(leaves * shape.hosts / site.nics), site);
}

}  // namespace

Result<Wiring> build(const DragonflyPlus& shape, const Site& site, Graph& graph) {
  SIBYL_CHECK(check_plus(shape, site));
  Wiring result;
  LeafSpineGroups rule;
  rule.groups = shape.groups, rule.leaves_each = shape.leaves;
  rule.spines_each = shape.spines, rule.global_each = shape.global_links;
  const int leaves = shape.groups * shape.leaves, spines = shape.groups * shape.spines;
  const auto first_leaf = static_cast<VertexId>(graph.vertices());
  for (int i = 0; i < leaves; ++i) graph.add(Place::network_switch, -1, i, "leaf");
  rule.first_spine = static_cast<VertexId>(graph.vertices());
  for (int i = 0; i < spines; ++i) graph.add(Place::network_switch, -1, i, "spine");
  add_terminals(rule.routers, result, first_leaf, leaves, shape.hosts, site, graph);
  for (int leaf = 0; leaf < leaves; ++leaf)
    for (int spine = 0; spine < shape.spines; ++spine)
      rule.local.push_back(graph.cable(first_leaf + static_cast<VertexId>(leaf),
                                       rule.first_spine + static_cast<VertexId>(leaf / shape.leaves * shape.spines + spine),
                                       site.between_routers(), Reach::between));
  const auto spine_of = [&](int group, int port) {
    return rule.first_spine + static_cast<VertexId>(group * shape.spines + port / shape.global_links);
  };
  rule.global = join_groups(shape.groups, shape.spines * shape.global_links, spine_of,
                            shape.global_link.bandwidth.value() > 0 ? shape.global_link : site.between_routers(), graph);
  result.routing = std::move(rule);
  return result;
}

}  // namespace sibyl::fabric

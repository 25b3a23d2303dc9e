#include <fmt/format.h>

#include <cmath>

#include "netmodel/fabric/outside/tree.h"

namespace sibyl::fabric {
namespace {

Result<void> check(const FatTree& shape, const Site& site) {
  if (site.direct) return fail("a tree needs NICs", {}, "give the cluster a nic");
  if (shape.down.empty() || shape.down.size() > 8) return fail("a tree has 1 to 8 levels of switches");
  if (shape.up.size() + 1 != shape.down.size())
    return fail(fmt::format("a tree of {} levels has {} numbers of uplinks, not {}", shape.down.size(),
                            shape.down.size() - 1, shape.up.size()));
  double terminals = 1, copies = 1, cables = 0;
  for (std::size_t i = 0; i < shape.down.size(); ++i) {
    SIBYL_CHECK(check_counts({{"down", shape.down[i]}, {"up", i > 0 ? shape.up[i - 1] : 1}}));
    terminals *= shape.down[i];
  }
  double below = 1;
  for (std::size_t i = 0; i < shape.down.size(); ++i) {
    copies *= i > 0 ? shape.up[i - 1] : 1;
    cables += terminals / below * copies;
    below *= shape.down[i];
  }
  if (cables > most_cables) return fail(fmt::format("a fabric has at most {:.0f} cables", most_cables));
  if (site.link.bandwidth.value() > 0 && site.oversubscription > 1)
    return fail("oversubscription and the bandwidth of links between switches both say how fast uplinks are", {},
                "give one of them");
  return check_room(std::floor(terminals / site.nics), site);
}

void add_switches(UpDown& rule, std::int64_t terminals, Graph& graph) {
  const std::size_t levels = rule.down.size();
  for (std::size_t level = 1; level <= levels; ++level) {
    rule.first.push_back(static_cast<VertexId>(graph.vertices()));
    const std::string word = level == 1       ? (levels == 1 ? "switch" : "leaf")
                             : level < levels ? fmt::format("level {} switch", level)
                                              : "spine";
    const std::int64_t count = terminals / rule.below[level] * rule.copies[level];
    for (std::int64_t i = 0; i < count; ++i) graph.add(Place::network_switch, -1, static_cast<int>(i), word);
  }
}

// From every vertex of a level to its parents; children before parents, in order, which UpDown::next() relies on.
void add_cables(const UpDown& rule, std::size_t level, std::int64_t terminals, const LinkRate& link, Graph& graph) {
  const std::int64_t parents = level > 0 ? rule.up[level - 1] : 1, copies = rule.copies[level];
  const int links = static_cast<int>(copies * parents);
  for (std::int64_t over = 0; over < terminals / rule.below[level]; ++over) {
    ChannelId there = 0, back = 0;
    const auto new_channels = [&](int count) {
      there = graph.channel(link.bandwidth.value() * count, Reach::between, count);
      back = link.duplex == Duplex::half ? there : graph.channel(link.bandwidth.value() * count, Reach::between, count);
    };
    if (rule.bundled) new_channels(links);
    for (std::int64_t copy = 0; copy < copies; ++copy)
      for (std::int64_t parent = 0; parent < parents; ++parent) {
        if (!rule.bundled) new_channels(1);
        const std::int64_t above = over / rule.down[level] * copies * parents + parent * copies + copy;
        graph.cable(rule.first[level] + static_cast<VertexId>(over * copies + copy),
                    rule.first[level + 1] + static_cast<VertexId>(above), link.latency.value(), there, back);
      }
  }
}

}  // namespace

FatTree FatTree::k_ary(int ports) {
  const int half = ports / 2;
  return {{half, half, ports}, {half, half}};
}

Result<Wiring> build_tree(const FatTree& shape, const Site& site, bool by_rail, Graph& graph) {
  SIBYL_CHECK(check(shape, site));
  UpDown rule{shape.down, shape.up, {}, {1}, {1}, site.ecmp == Ecmp::split};
  for (std::size_t level = 0; level < shape.down.size(); ++level) {
    rule.below.push_back(rule.below.back() * shape.down[level]);
    rule.copies.push_back(rule.copies.back() * (level > 0 ? shape.up[level - 1] : 1));
  }
  const std::int64_t terminals = rule.below.back();
  const int nodes = static_cast<int>(terminals / site.nics);
  Wiring result;
  result.nodes = nodes;
  rule.first.push_back(static_cast<VertexId>(graph.vertices()));
  for (std::int64_t t = 0; t < terminals; ++t) {
    const auto node = static_cast<int>(by_rail ? t % nodes : t / site.nics);
    const auto nic = static_cast<int>(by_rail ? t / nodes : t % site.nics);
    graph.add(Place::nic, node, nic, "NIC");
  }
  for (int node = 0; node < nodes; ++node)
    for (int nic = 0; nic < site.nics; ++nic)
      result.terminals.push_back(rule.first[0] +
                                 static_cast<VertexId>(by_rail ? nic * nodes + node : node * site.nics + nic));
  add_switches(rule, terminals, graph);
  LinkRate link = site.link;
  link.bandwidth = site.nic_bandwidth;
  for (std::size_t level = 0; level < shape.down.size(); ++level) {
    if (level > 0) {
      const double from_below = link.bandwidth.value() * shape.down[level - 1];
      link.bandwidth = site.link.bandwidth.value() > 0
                           ? site.link.bandwidth
                           : BytesPerSecond{from_below / (site.oversubscription * shape.up[level - 1])};
    }
    add_cables(rule, level, terminals, link, graph);
  }
  result.routing = std::move(rule);
  return result;
}

Result<Wiring> build(const FatTree& shape, const Site& site, Graph& graph) {
  return build_tree(shape, site, false, graph);
}

}  // namespace sibyl::fabric

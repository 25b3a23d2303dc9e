#include "calibration/fabric_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>

#include "base/quantity.h"
#include "calibration/yaml_mapping.h"

namespace sibyl {
namespace {

using fabric::Duplex;
using fabric::FabricSpec;
using fabric::LinkRate;

Result<Duplex> parse_duplex(const std::string& text) {
  if (text == "full") return Duplex::full;
  if (text == "half") return Duplex::half;
  return fail(fmt::format("unknown duplex '{}'", text), {}, "full or half");
}

void rate(YamlMapping& m, LinkRate& link, bool required = false) {
  m.scalar("bandwidth", link.bandwidth, parse_bytes_per_second, required);
  m.scalar("latency", link.latency, parse_seconds);
  m.scalar("duplex", link.duplex, parse_duplex);
}

// What `kind` says in a mapping, before its other keys are read.
Result<std::string> kind_of(const YAML::Node& node, const YamlMapping& m, const std::string& name) {
  if (node.IsMap())
    for (const auto& member : node)
      if (member.first.IsScalar() && member.first.Scalar() == "kind") return m.single_value(member.second);
  return fail(fmt::format("{} must be a mapping with the key 'kind'", name), m.where(node));
}

// A shape's keys, declared on a mapping; what they read into lives in `spec`.
template <class Target>
using Declare = void (*)(YamlMapping& m, Target& spec);

template <class Target>
Result<Declare<Target>> declared(const std::map<std::string, Declare<Target>>& kinds, const std::string& kind,
                                 const std::string& where) {
  if (const auto known = kinds.find(kind); known != kinds.end()) return known->second;
  std::vector<std::string> names;
  for (const auto& [name, declare] : kinds) names.push_back(name);
  return fail(fmt::format("unknown kind '{}'", kind), where, fmt::format("known are {}", fmt::join(names, ", ")));
}

// All that any kind of network may say.
struct Shapes {
  FabricSpec spec;
  fabric::Torus torus;
  fabric::FatTree tree;
  int ports = 0;
  fabric::LeafSpine leaf_spine;
  fabric::RailOptimised rails;
  fabric::Dragonfly dragonfly;
  std::string routing = "minimal";
  fabric::DragonflyPlus plus;
  fabric::Custom custom;
};

void torus(YamlMapping& m, Shapes& s) {
  m.counts("dimensions", s.torus.dimensions, true);
  m.scalar("wraps", s.torus.wraps, parse_yes_or_no);
}

void ring(YamlMapping& m, Shapes& s) { m.counts("size", s.torus.dimensions, true); }

void fat_tree(YamlMapping& m, Shapes& s) {
  m.scalar("ports", s.ports, parse_count);
  m.counts("down", s.tree.down);
  m.counts("up", s.tree.up);
}

void leaf_spine(YamlMapping& m, Shapes& s) {
  m.scalar("nodes_per_leaf", s.leaf_spine.nodes_per_leaf, parse_count, true);
  m.scalar("leaves", s.leaf_spine.leaves, parse_count, true);
  m.scalar("spines", s.leaf_spine.spines, parse_count, true);
}

void rail_optimised(YamlMapping& m, Shapes& s) {
  m.scalar("nodes_per_leaf", s.rails.nodes_per_leaf, parse_count, true);
  m.scalar("leaves", s.rails.leaves, parse_count, true);
  m.scalar("spines", s.rails.spines, parse_count, true);
  m.scalar("cross_inside", s.rails.cross_inside, parse_yes_or_no);
}

Result<std::string> parse_routing(const std::string& text) {
  if (text == "minimal" || text == "valiant") return text;
  return fail(fmt::format("unknown routing '{}'", text), {}, "minimal or valiant");
}

void dragonfly(YamlMapping& m, Shapes& s) {
  m.scalar("groups", s.dragonfly.groups, parse_count, true);
  m.scalar("routers", s.dragonfly.routers, parse_count, true);
  m.scalar("hosts", s.dragonfly.hosts, parse_count, true);
  m.scalar("global_links", s.dragonfly.global_links, parse_count, true);
  m.scalar("routing", s.routing, parse_routing);
}

void dragonfly_plus(YamlMapping& m, Shapes& s) {
  m.scalar("groups", s.plus.groups, parse_count, true);
  m.scalar("leaves", s.plus.leaves, parse_count, true);
  m.scalar("spines", s.plus.spines, parse_count, true);
  m.scalar("hosts", s.plus.hosts, parse_count, true);
  m.scalar("global_links", s.plus.global_links, parse_count, true);
}

Result<void> read_cable(const YAML::Node& node, const std::string& file, Shapes& s) {
  YamlMapping m(file, "a link");
  fabric::Custom::Cable cable;
  m.scalar("from", cable.from, parse_text, true);
  m.scalar("to", cable.to, parse_text, true);
  rate(m, cable.link);
  m.scalar("back", cable.back, parse_bytes_per_second);
  m.scalar("parallel", cable.parallel, parse_count);
  SIBYL_CHECK(m.read(node));
  cable.where = m.where(node);
  if (cable.link.bandwidth.value() <= 0) cable.link.bandwidth = s.spec.link.bandwidth;
  if (!m.given("latency")) cable.link.latency = s.spec.link.latency;
  if (!m.given("duplex")) cable.link.duplex = s.spec.link.duplex;
  if (cable.link.bandwidth.value() <= 0)
    return fail("the link's bandwidth is not said, nor that of all links", cable.where);
  if (cable.back.value() > 0 && cable.link.duplex == Duplex::half)
    return fail("a half-duplex link has one bandwidth for both ways", cable.where);
  s.custom.cables.push_back(std::move(cable));
  return {};
}

const std::map<std::string, Declare<Shapes>>& networks() {
  static const std::map<std::string, Declare<Shapes>> kinds{{"fully connected", [](YamlMapping&, Shapes&) {}},
                                                            {"ring", ring},
                                                            {"torus", torus},
                                                            {"fat tree", fat_tree},
                                                            {"leaf spine", leaf_spine},
                                                            {"rail optimised", rail_optimised},
                                                            {"dragonfly", dragonfly},
                                                            {"dragonfly plus", dragonfly_plus},
                                                            {"custom", [](YamlMapping&, Shapes&) {}}};
  return kinds;
}

struct Insides {
  fabric::InnerLinks custom;
  fabric::NvSwitch nvswitch;
  fabric::CubeMesh cube;
  fabric::PcieTree pcie;
};

void pcie_tree(YamlMapping& m, Insides& s) {
  m.scalar("sockets", s.pcie.sockets, parse_count);
  m.scalar("switches_per_socket", s.pcie.switches_per_socket, parse_count);
  m.scalar("uplink", s.pcie.uplink, parse_bytes_per_second);
}

const std::map<std::string, Declare<Insides>>& insides() {
  static const std::map<std::string, Declare<Insides>> kinds{
      {"custom", [](YamlMapping&, Insides&) {}},
      {"nvswitch", [](YamlMapping& m, Insides& s) { m.scalar("switches", s.nvswitch.switches, parse_count); }},
      {"fully connected", [](YamlMapping&, Insides&) {}},
      {"ring", [](YamlMapping&, Insides&) {}},
      {"hybrid cube mesh", [](YamlMapping& m, Insides& s) { m.scalar("links", s.cube.links, parse_count); }},
      {"pcie tree", pcie_tree}};
  return kinds;
}

Result<void> read_inner_link(const YAML::Node& node, const std::string& file, fabric::InnerLinks& custom) {
  YamlMapping m(file, "a link");
  fabric::InnerLinks::Link link;
  Seconds latency;
  m.scalar("from", link.from, parse_text, true);
  m.scalar("to", link.to, parse_text, true);
  m.scalar("bandwidth", link.bandwidth, parse_bytes_per_second);
  m.scalar("latency", latency, parse_seconds);
  m.scalar("duplex", link.duplex, parse_duplex);
  m.scalar("back", link.back, parse_bytes_per_second);
  m.scalar("parallel", link.parallel, parse_count);
  SIBYL_CHECK(m.read(node));
  link.where = m.where(node);
  if (m.given("latency")) link.latency = latency;
  if (link.back.value() > 0 && link.duplex == Duplex::half)
    return fail("a half-duplex link has one bandwidth for both ways", link.where);
  custom.links.push_back(std::move(link));
  return {};
}

// The key `links` of `name`: a list, each entry of which `read` takes.
void list_of_links(YamlMapping& m, const std::string& file, std::function<Result<void>(const YAML::Node&)> read) {
  m.key(
      "links",
      [file, read = std::move(read)](const YAML::Node& list) -> Result<void> {
        if (!list.IsSequence()) return fail("links must be a list", YamlMapping(file, "links").where(list));
        for (const YAML::Node& link : list) SIBYL_CHECK(read(link));
        return {};
      },
      true);
}

Result<fabric::Inside> read_inside(const YAML::Node& node, const std::string& file) {
  YamlMapping m(file, "inside"), sockets(file, "between_sockets");
  SIBYL_TRY(const std::string kind, kind_of(node, m, "inside"));
  SIBYL_TRY(const auto declare, declared(insides(), kind, m.where(node)));
  Insides all;
  std::string name;
  m.scalar("kind", name, parse_text);
  declare(m, all);
  if (kind == "pcie tree") {
    rate(sockets, all.pcie.between_sockets, true);
    m.mapping("between_sockets", sockets);
  }
  if (kind == "custom")
    list_of_links(m, file, [&](const YAML::Node& link) { return read_inner_link(link, file, all.custom); });
  SIBYL_CHECK(m.read(node));
  if (kind == "custom") return all.custom;
  if (kind == "nvswitch") return all.nvswitch;
  if (kind == "fully connected") return fabric::Mesh{};
  if (kind == "ring") return fabric::InnerRing{};
  if (kind == "hybrid cube mesh") return all.cube;
  return all.pcie;
}

// Which of the shapes it is.
Result<void> choose(Shapes& s, const std::string& kind, const YamlMapping& m, const std::string& where) {
  FabricSpec& spec = s.spec;
  if (kind == "fully connected") spec.network = fabric::FullyConnected{};
  if (kind == "torus") spec.network = s.torus;
  if (kind == "ring") {
    if (s.torus.dimensions.size() != 1) return fail("a ring has one size", where);
    spec.network = s.torus;
  }
  if (kind == "fat tree") {
    if ((s.ports > 0) == m.given("down").has_value())
      return fail("a fat tree is said by 'ports' or by 'down' and 'up'", where);
    if (s.ports > 0 && (s.ports % 2 != 0 || m.given("up"))) return fail("'ports' is an even number, alone", where);
    spec.network = s.ports > 0 ? fabric::FatTree::k_ary(s.ports) : s.tree;
  }
  if (kind == "leaf spine") spec.network = s.leaf_spine;
  if (kind == "rail optimised") spec.network = s.rails;
  s.dragonfly.valiant = s.routing == "valiant";
  if (kind == "dragonfly") spec.network = s.dragonfly;
  if (kind == "dragonfly plus") spec.network = s.plus;
  if (kind == "custom") spec.network = s.custom;
  return {};
}

}  // namespace

Result<FabricSpec> read_fabric(const YAML::Node& node, const std::string& file, TopologySpec& topology) {
  YamlMapping m(file, "fabric"), link(file, "link"), global_link(file, "global_link");
  SIBYL_TRY(const std::string kind, kind_of(node, m, "fabric"));
  SIBYL_TRY(const auto declare, declared(networks(), kind, m.where(node)));
  Shapes s;
  std::string name;
  m.scalar("kind", name, parse_text);
  rate(link, s.spec.link);
  m.mapping("link", link);
  m.scalar("switch_latency", topology.switch_latency, parse_seconds);
  m.scalar("ecmp", s.spec.ecmp, fabric::parse_ecmp);
  m.scalar("background", s.spec.background, parse_share);
  if (kind == "fat tree" || kind == "leaf spine" || kind == "rail optimised")
    m.scalar("oversubscription", topology.oversubscription, parse_factor);
  if (kind == "dragonfly" || kind == "dragonfly plus") {
    rate(global_link, kind == "dragonfly" ? s.dragonfly.global_link : s.plus.global_link, true);
    m.mapping("global_link", global_link);
  }
  m.key("inside", [&](const YAML::Node& inside) -> Result<void> {
    SIBYL_TRY(s.spec.inside, read_inside(inside, file));
    return {};
  });
  declare(m, s);
  // Read after the other keys: those of `link` hold for all links that do not say otherwise.
  std::vector<YAML::Node> links;
  if (kind == "custom")
    list_of_links(m, file, [&](const YAML::Node& cable) -> Result<void> {
      links.push_back(cable);
      return {};
    });
  SIBYL_CHECK(m.read(node));
  for (const YAML::Node& cable : links) SIBYL_CHECK(read_cable(cable, file, s));
  SIBYL_CHECK(choose(s, kind, m, m.where(node)));
  return std::move(s.spec);
}

}  // namespace sibyl

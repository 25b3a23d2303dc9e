// Link by link; messages take the fewest hops over switches. A host passes on nothing that is for others, but where
// links end at the devices, which are switches by construction, and where no switches join all hosts: those are cabled
// to one another and must.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "netmodel/fabric/outside.h"

namespace sibyl::fabric {
namespace {

constexpr std::size_t most_vertices = 4096;  // tables of hops are kept for each NIC
constexpr int most_parallel = 1024;

// The number behind `word`, all of it; nothing where the text is otherwise.
std::optional<int> number_after(std::string_view word, std::string_view text) {
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  int number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

class Names {
 public:
  Names(const Site& site, Wiring& network, Graph& graph) : site_(site), network_(network), graph_(graph) {}

  Result<VertexId> vertex(const std::string& name, const std::string& where) {
    const std::size_t dot = name.find('.');
    const auto node = number_after("node", std::string_view(name).substr(0, dot));
    if (!node) return a_switch(name, where);
    if (*node >= site_.nodes)
      return fail(fmt::format("there is no node {}: the cluster has {}", *node, site_.nodes), where);
    const auto nic =
        dot == std::string::npos ? std::optional(0) : number_after("nic", std::string_view(name).substr(dot + 1));
    if (!nic || *nic >= site_.nics)
      return fail(fmt::format("'{}' is not a NIC of a node", name), where,
                  fmt::format("node{0}, or node{0}.nic0 to node{0}.nic{1}", *node, site_.nics - 1));
    return network_.terminals[static_cast<std::size_t>(*node) * static_cast<std::size_t>(site_.nics) +
                              static_cast<std::size_t>(*nic)];
  }

 private:
  Result<VertexId> a_switch(const std::string& name, const std::string& where) {
    if (name.empty()) return fail("a link's end has no name", where);
    const auto known = switches_.find(name);
    if (known != switches_.end()) return known->second;
    if (graph_.vertices() >= most_vertices)
      return fail(fmt::format("a fabric given link by link has at most {} NICs and switches", most_vertices), where);
    return switches_[name] = graph_.add(Place::network_switch, -1, -1, name);
  }

  const Site& site_;
  Wiring& network_;
  Graph& graph_;
  std::map<std::string, VertexId> switches_;
};

ShortestPath fewest_hops(const Graph& graph, const std::vector<VertexId>& terminals, bool hosts_pass_on) {
  ShortestPath rule;
  for (VertexId v = 0; v < graph.vertices(); ++v)
    rule.through.push_back(hosts_pass_on || graph.vertex(v).place == Place::network_switch);
  for (const VertexId terminal : terminals) rule.add_target(graph, terminal);
  return rule;
}

bool joins_all(const ShortestPath& rule, const std::vector<VertexId>& terminals) {
  return std::ranges::all_of(terminals, [&](VertexId to) {
    const std::vector<int>& left = rule.hops.at(to);
    return std::ranges::all_of(terminals, [&](VertexId from) { return left[from] >= 0; });
  });
}

}  // namespace

Result<Wiring> build(const Custom& shape, const Site& site, Graph& graph) {
  if (static_cast<double>(site.nodes) * site.nics > most_vertices / 2)
    return fail(fmt::format("a fabric given link by link has at most {} NICs", most_vertices / 2));
  Wiring result;
  result.nodes = site.nodes;
  for (int node = 0; node < site.nodes; ++node)
    for (int nic = 0; nic < site.nics; ++nic)
      result.terminals.push_back(site.direct ? graph.add(Place::device, node, 0, "device")
                                             : graph.add(Place::nic, node, nic, "NIC"));
  Names names(site, result, graph);
  for (const Custom::Cable& cable : shape.cables) {
    SIBYL_TRY(const VertexId from, names.vertex(cable.from, cable.where));
    SIBYL_TRY(const VertexId to, names.vertex(cable.to, cable.where));
    if (from == to) return fail(fmt::format("a link from '{}' to itself", cable.from), cable.where);
    if (cable.parallel < 1 || cable.parallel > most_parallel)
      return fail(fmt::format("parallel is from 1 to {}", most_parallel), cable.where);
    if (static_cast<double>(graph.edges().size()) / 2 + cable.parallel > most_cables)
      return fail(fmt::format("a fabric has at most {:.0f} cables", most_cables), cable.where);
    for (int i = 0; i < cable.parallel; ++i) graph.cable(from, to, cable.link, Reach::between, cable.back.value());
  }
  ShortestPath rule = fewest_hops(graph, result.terminals, site.direct);
  if (!site.direct && !joins_all(rule, result.terminals)) rule = fewest_hops(graph, result.terminals, true);
  for (const VertexId terminal : result.terminals)
    if (rule.hops.at(result.terminals.front())[terminal] < 0)
      return fail(fmt::format("no way leads from {} to {}", graph.name(result.terminals.front()), graph.name(terminal)),
                  {}, "links must join all nodes");
  result.routing = std::move(rule);
  return result;
}

}  // namespace sibyl::fabric

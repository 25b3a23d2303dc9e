// Link by link: devices, NICs and bridges of any names.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>

#include "netmodel/fabric/inside.h"

namespace sibyl::fabric {
namespace {

constexpr int most_parallel_links = 64;
constexpr std::size_t most_bridges = 256, most_inner_links = 8192;

// "device3": 3 of `word` device; nothing where the name is otherwise.
std::optional<int> numbered(std::string_view word, std::string_view name) {
  if (!name.starts_with(word) || name.size() == word.size()) return std::nullopt;
  int number = 0;
  const char* end = name.data() + name.size();
  const auto [stopped, status] = std::from_chars(name.data() + word.size(), end, number);
  if (status != std::errc{} || stopped != end || number < 0) return std::nullopt;
  return number;
}

class InnerNames {
 public:
  InnerNames(const TopologySpec& spec, Graph& graph) : spec_(spec), graph_(graph) {}

  // Devices come first in the graph, then NICs.
  Result<VertexId> vertex(const std::string& name, const std::string& where) {
    if (const auto device = numbered("device", name)) {
      if (*device < spec_.devices_per_node) return static_cast<VertexId>(*device);
      return fail(fmt::format("there is no device {}: a node has {}", *device, spec_.devices_per_node), where);
    }
    if (const auto nic = numbered("nic", name)) {
      if (*nic < spec_.nics_per_node) return static_cast<VertexId>(spec_.devices_per_node + *nic);
      return fail(fmt::format("there is no NIC {}: a node has {}", *nic, spec_.nics_per_node), where);
    }
    if (name.empty()) return fail("a link's end has no name", where);
    const auto known = bridges_.find(name);
    if (known != bridges_.end()) return known->second;
    if (bridges_.size() == most_bridges) return fail(fmt::format("a node has at most {} bridges", most_bridges), where);
    return bridges_[name] = graph_.add(Place::bridge, -1, -1, name);
  }
  [[nodiscard]] std::size_t bridges() const { return bridges_.size(); }

 private:
  const TopologySpec& spec_;
  Graph& graph_;
  std::map<std::string, VertexId> bridges_;
};

Result<void> plug(const InnerLinks::Link& link, VertexId a, VertexId b, const TopologySpec& spec, const Graph& graph,
                  Ports& ports) {
  if (graph.vertex(a).place != Place::nic) std::swap(a, b);
  if (graph.vertex(b).place == Place::nic) return fail("a link joins two NICs", link.where);
  if (link.bandwidth.value() > 0 || link.latency || link.back.value() > 0 || link.parallel != 1)
    return fail("a NIC's link is as fast as the NIC: it has no rate of its own", link.where,
                "put a bridge between them for one that is slower");
  ports.of_nic[a - static_cast<VertexId>(spec.devices_per_node)].push_back(b);
  return {};
}

}  // namespace

Result<Ports> join(const InnerLinks& shape, const TopologySpec& spec, Graph& graph) {
  Ports ports;
  ports.of_nic.resize(static_cast<std::size_t>(spec.nics_per_node));
  InnerNames names(spec, graph);
  for (const InnerLinks::Link& link : shape.links) {
    SIBYL_TRY(const VertexId from, names.vertex(link.from, link.where));
    SIBYL_TRY(const VertexId to, names.vertex(link.to, link.where));
    if (from == to) return fail(fmt::format("a link from '{}' to itself", link.from), link.where);
    if (graph.vertex(from).place == Place::nic || graph.vertex(to).place == Place::nic) {
      SIBYL_CHECK(plug(link, from, to, spec, graph, ports));
      continue;
    }
    if (link.parallel < 1 || link.parallel > most_parallel_links)
      return fail(fmt::format("parallel is from 1 to {}", most_parallel_links), link.where);
    if (graph.edges().size() / 2 + static_cast<std::size_t>(link.parallel) > most_inner_links)
      return fail(fmt::format("a node has at most {} links", most_inner_links), link.where);
    const bool direct = graph.vertex(from).place == Place::device && graph.vertex(to).place == Place::device;
    const Seconds hop = link.latency.value_or(direct ? spec.device_link.latency : spec.device_link.latency / 2);
    const BytesPerSecond rate = link.bandwidth.value() > 0 ? link.bandwidth : spec.device_link.bandwidth;
    for (int i = 0; i < link.parallel; ++i)
      graph.cable(from, to, {rate, hop, link.duplex}, Reach::inside, link.back.value());
  }
  ports.meshed = names.bridges() == 0;
  return ports;
}

}  // namespace sibyl::fabric

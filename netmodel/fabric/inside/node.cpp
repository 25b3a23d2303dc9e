#include <fmt/format.h>

#include <algorithm>

#include "netmodel/fabric/inside.h"

namespace sibyl::fabric {
namespace {

// Which devices a NIC belongs to by number: neighbours share one, or it has one of several of a device.
std::vector<VertexId> owners(int nic, int nics, int devices) {
  if (nics > devices) return {static_cast<VertexId>(nic * devices / nics)};
  std::vector<VertexId> result;
  for (int device = 0; device < devices; ++device)
    if (device * nics / devices == nic) result.push_back(static_cast<VertexId>(device));
  return result;
}

// Rings over `units[a][b]` links: depth first, the richest link first; each as often as its links allow, and the other
// way round.
class RingSearch {
 public:
  explicit RingSearch(std::vector<std::vector<int>> units) : units_(std::move(units)) {}

  std::vector<std::vector<int>> all() {
    std::vector<std::vector<int>> rings;
    for (start(); extend(); start()) {
      while (take(ring_)) rings.push_back(ring_);
      std::ranges::reverse(ring_);
      while (take(ring_)) rings.push_back(ring_);
    }
    return rings;
  }

 private:
  static constexpr int most_tries = 20'000;

  int& unit(int a, int b) { return units_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; }

  void start() { tries_ = most_tries, ring_ = {0}; }

  bool take(const std::vector<int>& ring) {
    const auto next = [&](std::size_t i) { return ring[(i + 1) % ring.size()]; };
    for (std::size_t i = 0; i < ring.size(); ++i)
      if (unit(ring[i], next(i)) == 0) return false;
    for (std::size_t i = 0; i < ring.size(); ++i) --unit(ring[i], next(i));
    return true;
  }

  bool extend() {
    if (--tries_ < 0) return false;
    const int at = ring_.back();
    if (ring_.size() == units_.size()) return unit(at, 0) > 0;
    std::vector<int> next;
    for (int to = 1; to < static_cast<int>(units_.size()); ++to)
      if (unit(at, to) > 0 && std::ranges::find(ring_, to) == ring_.end()) next.push_back(to);
    std::ranges::stable_sort(next, [&](int a, int b) { return unit(at, a) > unit(at, b); });
    for (const int to : next) {
      ring_.push_back(to);
      if (extend()) return true;
      ring_.pop_back();
    }
    return false;
  }

  std::vector<std::vector<int>> units_;
  std::vector<int> ring_;
  int tries_ = 0;
};

}  // namespace

Result<Node> Node::make(const TopologySpec& spec, const Inside& shape) {
  if (spec.devices_per_node > most || spec.nics_per_node > most)
    return fail(fmt::format("a fabric's node has at most {} devices and as many NICs", most));
  Node node;
  node.devices_ = spec.devices_per_node;
  node.nics_ = spec.nics_per_node;
  for (int i = 0; i < node.devices_; ++i) node.graph_.add(Place::device, -1, i, "device");
  for (int i = 0; i < node.nics_; ++i) node.graph_.add(Place::nic, -1, i, "NIC");
  SIBYL_TRY(const Ports ports, std::visit([&](const auto& it) { return join(it, spec, node.graph_); }, shape));
  node.meshed_ = ports.meshed;
  const bool narrow = std::holds_alternative<OneHub>(shape) &&
                      (spec.device_link.kind == LinkKind::pcie || spec.device_link.kind == LinkKind::shared_memory);
  const BytesPerSecond to_nic = narrow ? std::min(spec.nic_left(), spec.device_link.left()) : spec.nic_left();
  for (int nic = 0; nic < node.nics_; ++nic) {
    const auto own = static_cast<std::size_t>(nic);
    const bool said = own < ports.of_nic.size() && !ports.of_nic[own].empty();
    const auto at = said ? ports.of_nic[own] : owners(nic, node.nics_, node.devices_);
    for (const VertexId port : at)
      node.graph_.cable(port, static_cast<VertexId>(node.devices_ + nic), {to_nic, spec.nic_latency, Duplex::full},
                        Reach::port);
  }
  SIBYL_CHECK(node.check_ways());
  node.find_ways();
  return node;
}

const std::vector<Step>& Node::way(VertexId from, VertexId to) const {
  const auto ends = static_cast<std::size_t>(devices_ + nics_);
  return ways_[from * ends + to];
}

// Of links that a person gave some may be missing.
Result<void> Node::check_ways() const {
  std::vector<bool> through;
  for (VertexId v = 0; v < graph_.vertices(); ++v) through.push_back(graph_.vertex(v).place != Place::nic);
  const std::vector<int> hops = graph_.hops_from(0, through);
  for (VertexId end = 0; end < static_cast<VertexId>(devices_ + nics_); ++end)
    if (hops[end] < 0)
      return fail(fmt::format("no way leads from device 0 to {} inside a node", graph_.name(end)), {},
                  "links must join all devices and NICs");
  return {};
}

void Node::find_ways() {
  const auto ends = static_cast<VertexId>(devices_ + nics_);
  ShortestPath rule;
  for (VertexId v = 0; v < graph_.vertices(); ++v) rule.through.push_back(graph_.vertex(v).place != Place::nic);
  for (VertexId end = 0; end < ends; ++end) rule.add_target(graph_, end);
  find_nearest(rule);
  ways_.resize(static_cast<std::size_t>(ends) * ends);
  const Routing routing(std::move(rule));
  const auto is_nic = [&](VertexId v) { return v >= static_cast<VertexId>(devices_); };
  for (VertexId a = 0; a < ends; ++a)
    for (VertexId b = 0; b < ends; ++b)
      if (a != b && !(is_nic(a) && is_nic(b))) walk(graph_, routing, a, b, Ecmp::split, 0, 1.0, ways_[a * ends + b]);
}

void Node::find_nearest(const ShortestPath& rule) {
  for (int device = 0; device < devices_; ++device) {
    std::vector<int> nearest;
    int fewest = 0;
    for (int nic = 0; nic < nics_; ++nic) {
      const int hops = rule.hops.at(static_cast<VertexId>(devices_ + nic))[static_cast<std::size_t>(device)];
      if (nearest.empty() || hops < fewest) nearest.clear(), fewest = hops;
      if (hops == fewest) nearest.push_back(nic);
    }
    if (nics_ <= devices_) {
      // One each, dealt out evenly.
      const int own = device * nics_ / devices_;
      const bool near = std::ranges::find(nearest, own) != nearest.end();
      nearest = {near ? own : nearest[static_cast<std::size_t>(device) % nearest.size()]};
    }
    nearest_.push_back(std::move(nearest));
  }
}

std::vector<std::vector<int>> Node::rings(int first, int count) const {
  std::vector<int> in_order;
  for (int i = 0; i < count; ++i) in_order.push_back(i);
  if (!meshed_ || count < 2 || first + count > devices_) return {in_order};
  double least = 0.0;
  std::vector<std::vector<double>> rate(static_cast<std::size_t>(count),
                                        std::vector<double>(static_cast<std::size_t>(count), 0.0));
  for (const Edge& edge : graph_.edges()) {
    const int a = static_cast<int>(edge.from) - first, b = static_cast<int>(edge.to) - first;
    if (a < 0 || b < 0 || a >= count || b >= count) continue;
    const double bandwidth = graph_.channels()[edge.channel].bandwidth;
    rate[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] += bandwidth;
    least = least == 0.0 ? bandwidth : std::min(least, bandwidth);
  }
  std::vector<std::vector<int>> units;
  for (const auto& row : rate) {
    units.emplace_back();
    for (const double bandwidth : row)
      units.back().push_back(least > 0 ? static_cast<int>(bandwidth / least + 1e-6) : 0);
  }
  auto rings = RingSearch(std::move(units)).all();
  return rings.empty() ? std::vector<std::vector<int>>{in_order} : rings;
}

}  // namespace sibyl::fabric

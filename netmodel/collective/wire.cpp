#include "netmodel/collective/wire.h"

#include <algorithm>
#include <cmath>

namespace sibyl::collective {

Wire::Wire(const Topology& topology, const PointToPoint& point_to_point, const ProtocolCost& cost, Ways ways)
    : topology_(topology),
      messages_(point_to_point),
      cost_(cost),
      both_ways_(ways == Ways::both),
      nics_per_rank_(std::max(1, topology.spec().nics_per_node / topology.spec().devices_per_node)) {}

FoundWay Wire::new_way(const Asked& asked) const {
  Way way{0, static_cast<double>(asked.flows), both_ways_};
  if (asked.nodes > 0) {
    const TopologySpec& spec = topology_.spec();
    way.level = std::max(1, topology_.span(asked.nodes));
    // A NIC is shared by whole messages; what is above it by all of them.
    const double sharing = static_cast<double>(asked.flows) / spec.nics_per_node;
    way.pairs = std::max(1.0, std::ceil(sharing - 1e-9));
    if (spec.oversubscription > 1) {
      double below = 1, narrowed = 1;
      for (int level = 2; level <= way.level; ++level) {
        below *= spec.nodes_per_switch, narrowed *= spec.oversubscription;
        way.pairs = std::max(way.pairs, sharing * narrowed * asked.reach.climbs(below, asked.nodes));
      }
    }
  }
  const FoundWay found = messages_.find(way);
  if (meets_ != nullptr) meets_->ways.push_back({asked, found});
  return found;
}

Partners Wire::meet(const Fold& fold, const GroupPlacement& placement, int distance) const {
  for (const auto& [at, counted] : known().partners)
    if (at == distance) return counted;
  const Partners counted = partners(fold, placement, distance);
  if (meets_ != nullptr) meets_->partners.emplace_back(distance, counted);
  return counted;
}

int Wire::on_one_nic(int ranks) const {
  const int nics = topology_.spec().nics_per_node;
  return (ranks + nics - 1) / nics;
}

std::vector<int> Wire::extents(int nodes) const { return topology_.extents(nodes); }

bool Wire::reduces_inside() const { return topology_.spec().device_link.reduces; }

bool Wire::reduces_across() const { return topology_.spec().switches_reduce; }

bool Wire::chains() const { return topology_.spec().device_link.kind != LinkKind::shared_memory; }

int Wire::stripes(int ranks) const { return std::min(ranks * nics_per_rank_, topology_.spec().nics_per_node); }

}  // namespace sibyl::collective

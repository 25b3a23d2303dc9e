#include "netmodel/collective/wire.h"

#include <algorithm>
#include <cmath>

namespace sibyl::collective {

double Wire::across(double bytes, int flows, int nodes, bool far) const {
  const TopologySpec& spec = topology_.spec();
  const int level = std::max(1, topology_.span(nodes));
  double sharing = static_cast<double>(flows) / spec.nics_per_node;
  if (far) sharing *= std::pow(spec.oversubscription, level - 1);
  const Way way{level, std::max(1, static_cast<int>(std::ceil(sharing - 1e-9))), both_ways_};
  return messages_.seconds(bytes / cost_.share, way) + cost_.across;
}

int Wire::on_one_nic(int ranks) const {
  const int nics = topology_.spec().nics_per_node;
  return (ranks + nics - 1) / nics;
}

std::vector<int> Wire::extents(int nodes) const { return topology_.extents(nodes); }

bool Wire::reduces_inside() const { return topology_.spec().device_link.reduces; }

bool Wire::reduces_across() const { return topology_.spec().switches_reduce; }

bool Wire::chains() const { return topology_.spec().device_link.kind != LinkKind::shared_memory; }

int Wire::stripes(int ranks) const {
  const TopologySpec& spec = topology_.spec();
  return std::min(ranks * std::max(1, spec.nics_per_node / spec.devices_per_node), spec.nics_per_node);
}

}  // namespace sibyl::collective

// Fabrics whose sums can be done by hand: NICs and links of 100 MB/s, devices of 1 GB/s; 1 us for a device link, 5 us
// for a NIC, nothing for switches and cables unless said.
#pragma once

#include <map>
#include <vector>

#include "netmodel/fabric/contention/sharing.h"
#include "netmodel/fabric/contention/simulation.h"
#include "netmodel/fabric/costs.h"
#include "tests/unit/netmodel/machine.h"

namespace sibyl::test {

inline constexpr double rate = 100e6;

inline fabric::FabricSpec shape(fabric::Outside network, fabric::Ecmp ecmp = fabric::Ecmp::split) {
  fabric::FabricSpec spec;
  spec.network = std::move(network);
  spec.ecmp = ecmp;
  return spec;
}

// One device a node, at which the links end.
inline fabric::Fabric direct(fabric::Outside network, int nodes) {
  fabric::FabricSpec spec = shape(std::move(network));
  spec.direct = true;
  spec.link.latency = Seconds{1e-6};
  return fabric::Fabric::make(cpu_spec(nodes, 1), spec).value();
}

inline fabric::Fabric with_nics(fabric::Outside network, int nodes, int devices_per_node = 1,
                                fabric::Ecmp ecmp = fabric::Ecmp::split, double oversubscription = 1.0) {
  TopologySpec spec = cpu_spec(nodes, devices_per_node);
  spec.oversubscription = oversubscription;
  return fabric::Fabric::make(spec, shape(std::move(network), ecmp)).value();
}

inline std::vector<fabric::Flow> shift(const fabric::Fabric& fabric, int by, double bytes = rate) {
  std::vector<fabric::Flow> flows;
  for (int i = 0; i < fabric.devices(); ++i) flows.push_back({i, (i + by) % fabric.devices(), bytes, 0.0});
  return flows;
}

inline std::vector<fabric::Flow> all_pairs(const fabric::Fabric& fabric, double bytes = rate) {
  std::vector<fabric::Flow> flows;
  for (int i = 0; i < fabric.devices(); ++i)
    for (int j = 0; j < fabric.devices(); ++j)
      if (i != j) flows.push_back({i, j, bytes, 0.0});
  return flows;
}

inline double last_end(const fabric::Fabric& fabric, const std::vector<fabric::Flow>& flows) {
  const std::vector<double> capacities = fabric.capacities();
  const auto ends = fabric::finish_times(fabric::FlowSet(fabric, capacities, flows).without_latency(), flows);
  return *std::max_element(ends.begin(), ends.end());
}

inline std::vector<fabric::Step> way(const fabric::Fabric& fabric, int from, int to) {
  std::vector<fabric::Step> steps;
  fabric.route(from, to, 0, steps);
  return steps;
}

inline std::vector<std::string> names(const fabric::Fabric& fabric, int from, int to) {
  std::vector<std::string> result;
  for (const fabric::Step& step : way(fabric, from, to))
    result.push_back(fabric.graph().name(fabric.graph().edges()[step.edge].to));
  return result;
}

}  // namespace sibyl::test

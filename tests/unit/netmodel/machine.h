// A machine whose messages are exactly straight lines: 10 us + bytes / (100 MB/s) between nodes, 1 us + bytes / (1
// GB/s) inside one. Sums can then be done by hand.
#pragma once

#include <vector>

#include "netmodel/network.h"
#include "netmodel/topology.h"

namespace sibyl::test {

inline TopologySpec cpu_spec(int nodes, int devices_per_node) {
  TopologySpec spec;
  spec.nodes = nodes;
  spec.devices_per_node = devices_per_node;
  spec.device_link = {LinkKind::shared_memory, BytesPerSecond{1e9}, Seconds{1e-6}};
  spec.nic_bandwidth = BytesPerSecond{100e6};
  spec.nic_latency = Seconds{5e-6};
  spec.switch_latency = Seconds{0.0};
  return spec;
}

inline std::vector<PointToPointSample> straight_lines() {
  std::vector<PointToPointSample> samples;
  for (double bytes = 1; bytes <= 1 << 24; bytes *= 4) {
    samples.push_back({false, 1, Bytes{bytes}, Seconds{10e-6 + bytes / 100e6}, 0.0});
    samples.push_back({true, 1, Bytes{bytes}, Seconds{1e-6 + bytes / 1e9}, 0.0});
  }
  return samples;
}

inline Network straight_network(int nodes, int devices_per_node, Algorithm algorithm,
                                std::vector<CollectiveSample> samples = {}) {
  return {Topology::make(cpu_spec(nodes, devices_per_node)).value(), straight_lines(), std::move(samples), algorithm};
}

}  // namespace sibyl::test

// A cluster's file that uses every key once.
#pragma once

#include <string>

namespace sibyl {

inline const std::string example_cluster = R"(name: test
calibration: v100-sxm2-16gb
nodes: 3
devices_per_node: 4
device_link: {kind: nvlink mesh, bandwidth: 120GB/s, latency: 1.5us}
nic:
  per_node: 2
  bandwidth: 100Gb/s
  latency: 2us
switch: {latency: 90ns, levels: 2, nodes_per_switch: 34, oversubscription: 3, reduces: true}
algorithm: ring
protocol: LL128
overlap: {compute_slowdown: 1.1, communication_slowdown: 1.25}
step_overhead_per_operation: 3us
storage: {bandwidth: 2GB/s}
)";

}  // namespace sibyl

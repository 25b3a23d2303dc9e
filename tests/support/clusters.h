// Clusters that tests build by hand: a CPU whose kernels follow the roofline, and a network by its datasheet.
#pragma once

#include "calibration/cluster.h"
#include "netmodel/topology.h"

namespace sibyl::test {

inline Device cpu_device() {
  Device device;
  device.name = "test-cpu";
  device.backend = Backend::cpu;
  device.peak = {{DType::f32, FlopsPerSecond{1e11}}, {DType::bf16, FlopsPerSecond{2e11}}};
  device.memory_bandwidth = BytesPerSecond{1e10};
  device.memory = Bytes{8e9};
  device.cache = Bytes{32e6};
  return device;
}

inline Cluster cluster(int nodes, int devices_per_node, BytesPerSecond nic = BytesPerSecond{1e9},
                       std::vector<KernelSample> samples = {}, Device device = cpu_device()) {
  TopologySpec spec;
  spec.nodes = nodes;
  spec.devices_per_node = devices_per_node;
  spec.nic_bandwidth = nic;
  return {"test",
          nodes,
          devices_per_node,
          KernelTable(std::move(device), std::move(samples)),
          sibyl::Network(*Topology::make(spec), {}, {}),
          {},
          {},
          {},
          {}};
}

// With devices of so much; their kernels are not measured.
inline Cluster with_memory(Cluster cluster, Bytes memory) {
  Device device = cluster.kernels.device();
  device.memory = memory;
  cluster.kernels = KernelTable(std::move(device), {});
  return cluster;
}

}  // namespace sibyl::test

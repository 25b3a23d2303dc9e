// A Cluster is what a plan is priced on: how many nodes of how many devices, what each device does with a kernel, and
// what the network does with a message. Read from cluster.yaml (docs/formats/cluster.md), which names a calibration
// (shipped, or a file beside it) and describes the topology; or straight from a calibration measured on that cluster.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "calibration/calibration.h"
#include "calibration/composition.h"
#include "calibration/meetings.h"
#include "netmodel/network.h"
#include "netmodel/topology.h"
#include "profiler/kernel_table.h"
#include "profiler/reuse_curve.h"

namespace sibyl {

struct Cluster {
  std::string name;
  int nodes = 1;
  int devices_per_node = 1;
  KernelTable kernels;
  Network network;
  OverlapSample overlap;
  OverlapSample overlap_with_gloo;  // beside PyTorch's all-reduce between CPUs; as `overlap` where it was not measured
  Seconds step_overhead_per_operation;
  Composition composition;
  BytesPerSecond storage_read{};  // of one node, all its ranks together; 0 where it is not known
  // What `overlap` is for messages of other lengths, the shortest first.
  std::vector<OverlapSample> overlap_by_message = {};
  BytesPerSecond storage_write{};   // as storage_read; 0 where it is not known
  bool storage_measured = false;    // both, by calibration; else said by hand
  bool one_machine = false;         // all nodes are: ranks of any of them share its memory
  BytesPerSecond host_link{};       // of one device, to or from its host's memory; 0 where it is not known
  bool host_link_measured = false;  // by calibration; else said by hand
  Meetings meetings = {};           // of ranks in the middle of a pass; where nothing is known kernels' spreads tell
  ReuseCurve reuse = {};            // what a device's cache still holds
  bool overlap_known = false;       // `overlap` was measured or said by hand, or messages are a CPU's
  // What-ifs of host_link and of storage where these are 0: of the assumed rates (outside_rates.h) so many times.
  double host_link_factor = 1, storage_factor = 1;

  [[nodiscard]] int devices() const { return nodes * devices_per_node; }
};

// `name_or_path`: a shipped cluster's name ("abci-v100"), a .yaml file, or a calibration's .json.
Result<Cluster> load_cluster(const std::string& name_or_path);
std::vector<std::string> shipped_clusters();

// The cluster that a calibration was taken on; `where` begins its errors.
Result<Cluster> measured_cluster(Calibration calibration, std::string name, const std::string& where);

// A calibration's devices, joined as `topology` says. `where` begins its errors.
Result<Cluster> cluster_of(Calibration calibration, std::string name, const TopologySpec& topology,
                           const std::string& where);

// Those devices on the network of `network`, which says how many they are.
Cluster on_network(Cluster devices, const Cluster& network);

// The same machine with other devices in its nodes: those of a shipped calibration ("h100-sxm"). Their kernels and what
// is known of their steps come with them; nodes, network and storage stay as they are and as they were measured.
Result<Cluster> with_devices(const Cluster& cluster, const std::string& calibration);

// The same machine with another number of nodes (and, for one node or less, devices), for scaling studies.
Result<Cluster> resized(const Cluster& cluster, int nodes, int devices_per_node);

}  // namespace sibyl

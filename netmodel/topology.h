// Devices, NICs, switches and the links between them.
//
// A TopologySpec is what a person knows of a machine; a Topology is the Boost.Graph of it. Large machines are
// regular, so the graph holds one whole node and, for each level of switches, one representative far node: building
// and asking cost the same for 2 nodes and for 65,536. Groups are taken to lie on consecutive nodes.
//
// Levels of distance: 0 = inside a node, 1 = under one first-level switch, 2 = through the second level of switches,
// ...
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "netmodel/network.h"

namespace sibyl {

// What joins the devices of a node.
enum class LinkKind {
  nvswitch,       // every pair at the full rate of a device
  nvlink_mesh,    // direct links: a pair has only its share of a device's links, a ring uses them all
  pcie,           // through bridges and host memory
  shared_memory,  // CPU ranks copying through memory
};
std::string_view to_string(LinkKind kind);  // "nvswitch", "nvlink mesh", "pcie", "shared memory"
Result<LinkKind> parse_link_kind(std::string_view text);

struct LinkSpec {
  LinkKind kind = LinkKind::pcie;
  BytesPerSecond bandwidth{16e9};  // of one device, per direction, all its links together
  Seconds latency{5e-6};           // device to device
  bool reduces = false;            // its switches add what passes (NVLink SHARP)
  double background = 0.0;         // share that others use, below 1

  [[nodiscard]] BytesPerSecond left() const { return bandwidth * (1.0 - background); }
  bool operator==(const LinkSpec&) const = default;
};

struct TopologySpec {
  int nodes = 1;
  int devices_per_node = 1;
  LinkSpec device_link;
  int nics_per_node = 1;
  BytesPerSecond nic_bandwidth{12.5e9};  // of one NIC, per direction
  Seconds nic_latency{2e-6};             // of one NIC: a message between nodes crosses two
  Seconds switch_latency{3e-7};          // of one switch
  int levels = 1;                        // levels of switches; 2 = leaf and spine
  int nodes_per_switch = 0;              // nodes (or switches) under each switch but the top one; 0 = any number
  double oversubscription = 1.0;         // bandwidth down over bandwidth up, of each switch but the top one
  bool switches_reduce = false;          // switches between nodes add what passes (SHARP)
  double nic_background = 0.0;           // share of each NIC that others use, below 1

  [[nodiscard]] BytesPerSecond nic_left() const { return nic_bandwidth * (1.0 - nic_background); }
  bool operator==(const TopologySpec&) const = default;
};

// What one message alone sees on its way.
struct Path {
  Seconds latency;
  BytesPerSecond bandwidth;
  int links = 0;
};

class Topology {
 public:
  // Counts must be at least 1, devices most_devices at most; bandwidths from 1 to 1e18 B/s, latencies from 0 to an
  // hour, oversubscription from 1 to 1e6, background from 0 to 0.99. The top level has room for any number of nodes.
  static Result<Topology> make(const TopologySpec& spec);

  [[nodiscard]] const TopologySpec& spec() const { return spec_; }
  [[nodiscard]] Result<Topology> resized(int nodes, int devices_per_node) const;

  // The level of distance that a group over this many consecutive nodes spans.
  [[nodiscard]] int span(int nodes) const;
  // How consecutive nodes lie under switches, from the leaves upwards: nodes of a leaf, leaves of the switch above, …;
  // their product is `nodes`. All in one where they do not fill their switches evenly.
  [[nodiscard]] std::vector<int> extents(int nodes) const;
  // Of two devices at that distance, alone on the network.
  [[nodiscard]] const Path& path(int level) const;
  // Between the farthest two ranks of a group.
  [[nodiscard]] const Path& worst_path(const GroupPlacement& placement) const;

  // Rate per direction that each node can push to distance `level` >= 1 when every node does so at once.
  [[nodiscard]] BytesPerSecond node_bandwidth(int level) const;

  // Size of the representative graph (for tests and `doctor`).
  [[nodiscard]] int vertices() const;

 private:
  struct Structure;
  Topology(const TopologySpec& spec, std::shared_ptr<const Structure> structure);
  TopologySpec spec_;
  std::shared_ptr<const Structure> structure_;
};

}  // namespace sibyl

// A node's inside: one generator for each shape, a file each in inside/. All nodes are alike, so one is made, with the
// ways between its devices and NICs, and copied.
//
// Inside a node messages take the fewest links, split evenly over ways as long; they may pass devices, but not NICs. A
// device uses its nearest NICs.
#pragma once

#include <vector>

#include "base/result.h"
#include "netmodel/fabric/graph.h"
#include "netmodel/fabric/routing.h"
#include "netmodel/topology.h"

namespace sibyl::fabric {

// What a generator makes: its bridges and links between devices (the vertices 0, 1, …), and where each NIC is plugged
// in.
struct Ports {
  std::vector<std::vector<VertexId>> of_nic;  // empty, or none for a NIC: at the devices that are its own by number
  bool meshed = false;                        // links from device to device: a library lays a ring for each
};

Result<Ports> join(const OneHub& shape, const TopologySpec& spec, Graph& graph);
Result<Ports> join(const NvSwitch& shape, const TopologySpec& spec, Graph& graph);
Result<Ports> join(const Mesh& shape, const TopologySpec& spec, Graph& graph);
Result<Ports> join(const CubeMesh& shape, const TopologySpec& spec, Graph& graph);
Result<Ports> join(const PcieTree& shape, const TopologySpec& spec, Graph& graph);
Result<Ports> join(const InnerRing& shape, const TopologySpec& spec, Graph& graph);

Result<Ports> join(const InnerLinks& shape, const TopologySpec& spec, Graph& graph);

class Node {
 public:
  static constexpr int most = 128;  // devices, and NICs

  static Result<Node> make(const TopologySpec& spec, const Inside& shape);

  // Devices are the vertices 0 to devices - 1, NICs follow, then bridges.
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] int devices() const { return devices_; }
  [[nodiscard]] int nics() const { return nics_; }
  [[nodiscard]] const std::vector<Step>& way(VertexId from, VertexId to) const;  // of which one is a device
  [[nodiscard]] const std::vector<int>& nics_of(int device) const { return nearest_[static_cast<std::size_t>(device)]; }

  // Orders in which rings pass the devices [first, first + count), no link used by two of them: several in a mesh (as
  // many as a search finds), one elsewhere.
  [[nodiscard]] std::vector<std::vector<int>> rings(int first, int count) const;

 private:
  [[nodiscard]] Result<void> check_ways() const;
  void find_ways();
  void find_nearest(const ShortestPath& rule);

  Graph graph_;
  int devices_ = 1, nics_ = 1;
  bool meshed_ = false;
  std::vector<std::vector<Step>> ways_;
  std::vector<std::vector<int>> nearest_;
};

}  // namespace sibyl::fabric

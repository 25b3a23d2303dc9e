// A Fabric: every device, bridge, NIC, switch and cable of a cluster, and the way of a message between any two devices.
//
// Made from a TopologySpec (counts, rates of device links and NICs, switch latency, oversubscription) and a FabricSpec
// (the shapes). Building takes time and memory in proportion to the cables; ways are found when they are asked for:
// inside a node from a table of one node (all are alike), between nodes by the network's rule. Pure and thread-safe
// once built.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "netmodel/fabric/inside.h"
#include "netmodel/fabric/outside.h"

namespace sibyl::fabric {

class Fabric {
 public:
  // Errors without a place; of a Custom shape with its cable's.
  static Result<Fabric> make(const TopologySpec& topology, const FabricSpec& spec);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const FabricSpec& spec() const { return spec_; }
  [[nodiscard]] int nodes() const { return network_.nodes; }  // there is room for
  [[nodiscard]] int devices_per_node() const { return devices_; }
  [[nodiscard]] int devices() const { return devices_ * network_.nodes; }
  [[nodiscard]] const Node& node() const { return node_; }

  // Appends the way from one device (node * devices_per_node + number) to another: each edge with the share of the
  // message that crosses it. `key` tells flows between the same devices apart where Ecmp draws. Nothing for a device
  // and itself.
  void route(int from, int to, std::uint64_t key, std::vector<Step>& steps) const;
  // Mean over the shares.
  [[nodiscard]] double latency(std::span<const Step> steps) const;
  // What a channel carries for us: bandwidth × efficiency, less the background's share between nodes.
  [[nodiscard]] std::vector<double> capacities(double inside_efficiency = 1.0, double outside_efficiency = 1.0) const;
  // "node 0 NIC 1 -> leaf 0"; of a bundle "… and 7 alike".
  [[nodiscard]] std::string channel_name(ChannelId channel) const;

 private:
  void add_insides();
  void add_inside(int node, VertexId from, VertexId to, double share, std::vector<Step>& steps) const;

  FabricSpec spec_;
  Graph graph_;
  Wiring network_;
  Node node_;
  int devices_ = 1;
  EdgeId first_inside_ = 0;
};

}  // namespace sibyl::fabric

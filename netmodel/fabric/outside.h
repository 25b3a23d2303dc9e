// What joins the nodes: one generator for each shape, a file each in outside/. A generator adds its switches and each
// node's NICs (or, where there are none, each node's device) to the graph, and says how messages are routed between
// them.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "netmodel/fabric/graph.h"
#include "netmodel/fabric/routing.h"
#include "netmodel/fabric/spec.h"

namespace sibyl::fabric {

// What generators share of the cluster.
struct Site {
  int nodes = 1;  // asked for; a shape may have room for more, and makes them all
  int nics = 1;   // of a node
  BytesPerSecond nic_bandwidth;
  LinkRate
      link;  // of all cables of the network: those to NICs have its duplex, too, and a NIC's bandwidth; 0: not said
  double oversubscription = 1.0;
  Ecmp ecmp = Ecmp::split;
  bool direct = false;

  // Between routers: a NIC's bandwidth where it is not said.
  [[nodiscard]] LinkRate between_routers() const;
};

struct Wiring {
  std::vector<VertexId> terminals;  // [node * NICs + NIC]; where there are none, [node]
  Routing routing;
  int nodes = 1;             // room
  bool choose_rail = false;  // a message leaves by the NIC with the number of the one that it arrives at
};

// Errors say what is wrong with the shape, and where in a file only for Custom.
Result<Wiring> build(const FullyConnected& shape, const Site& site, Graph& graph);
Result<Wiring> build(const Torus& shape, const Site& site, Graph& graph);
Result<Wiring> build(const FatTree& shape, const Site& site, Graph& graph);
Result<Wiring> build(const LeafSpine& shape, const Site& site, Graph& graph);
Result<Wiring> build(const RailOptimised& shape, const Site& site, Graph& graph);
Result<Wiring> build(const Dragonfly& shape, const Site& site, Graph& graph);
Result<Wiring> build(const DragonflyPlus& shape, const Site& site, Graph& graph);
Result<Wiring> build(const Custom& shape, const Site& site, Graph& graph);

// A router for each node with the node's NICs; or, in direct fabrics, the nodes' devices. The router is the node's own:
// no length of cable leads to it, so that of `link` counts once for each hop between nodes; its duplex holds there,
// too.
Wiring add_node_routers(const Site& site, int nodes, Graph& graph, Routers& routers);

// Below `count` switches from `first` on: `each` NICs of the nodes, in order.
void add_terminals(Routers& routers, Wiring& result, VertexId first, int count, int each, const Site& site,
                   Graph& graph);
// Groups, each with so many ports, by cables: port c (groups - 1) + o - 1 of a group is its c-th link to the group o
// further on. Gives the edge out of each, [group][port], -1 where a port stays free, as those beyond the last full
// round of groups do.
std::vector<std::int64_t> join_groups(int groups, int ports, const std::function<VertexId(int group, int port)>& owner,
                                      const LinkRate& link, Graph& graph);

inline constexpr double most_cables = 4e6;  // of a fabric: about a gigabyte
// At least 1 each, and room for `nodes`.
Result<void> check_counts(std::initializer_list<std::pair<const char*, int>> counts);
Result<void> check_room(double room, const Site& site);

}  // namespace sibyl::fabric

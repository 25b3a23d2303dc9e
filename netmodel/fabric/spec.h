// What a person knows of a fabric: how a node's devices are joined, and what joins the nodes.
//
// Counts, the link between devices, NICs, a switch's latency and oversubscription are those of the TopologySpec that
// goes with it (so a what-if changes both alike); here is the shape. Bandwidths are per direction. Where a link's
// bandwidth is 0 it is that of a NIC.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace sibyl::fabric {

enum class Duplex {
  full,  // each direction has the bandwidth
  half,  // both directions share it
};

struct LinkRate {
  BytesPerSecond bandwidth{};
  Seconds latency{};
  Duplex duplex = Duplex::full;

  bool operator==(const LinkRate&) const = default;
};

// How a message chooses among ways of the same length between nodes. Inside a node it is always split.
enum class Ecmp {
  split,        // evenly over all of them, as packets are sprayed (adaptive routing)
  hash,         // one way for each flow, drawn from a hash of its ends and its number
  destination,  // one way for each destination: switches take digits of its number (D-mod-k, as InfiniBand's subnet
                // managers)
};
std::string_view to_string(Ecmp ecmp);
Result<Ecmp> parse_ecmp(std::string_view text);

// ---- inside a node: TopologySpec::device_link is what one device has, all its links together ----

struct OneHub {};  // any pair at the full rate: what TopologySpec::device_link says by itself
struct NvSwitch {
  int switches = 1;  // planes, each with its share of a device's bandwidth
};
struct Mesh {};  // a direct link for each pair, with bandwidth / (devices - 1)
struct CubeMesh {
  int links = 6;  // of a device: 6 (DGX-1 with V100) or 4 (with P100); 8 devices
};
struct PcieTree {
  int sockets = 2;              // NUMA nodes
  int switches_per_socket = 1;  // devices and NICs are dealt out over all switches in order
  BytesPerSecond uplink{};      // of a switch to its socket; 0 = a device's
  LinkRate between_sockets{BytesPerSecond{20e9}, Seconds{5e-7}, Duplex::full};
};
struct InnerRing {};  // each device to the next, half of its bandwidth on either side
struct InnerLinks {   // link by link
  struct Link {
    std::string from, to;            // "device3", "nic1", or any other word: a bridge
    BytesPerSecond bandwidth{};      // 0: a device's. A NIC is only plugged in: its link is as fast as it
    std::optional<Seconds> latency;  // absent: a device link's, half of it where an end is a bridge
    BytesPerSecond back{};           // 0: as there
    Duplex duplex = Duplex::full;
    int parallel = 1;
    std::string where;  // for errors
  };
  std::vector<Link> links;
};

using Inside = std::variant<OneHub, NvSwitch, Mesh, CubeMesh, PcieTree, InnerRing, InnerLinks>;

// ---- between nodes ----

struct FullyConnected {};  // each node to each other one
struct Torus {
  std::vector<int> dimensions;  // the first varies fastest over consecutive nodes; one dimension is a ring
  bool wraps = true;            // false: a mesh
};
// Extended generalised fat tree (Öhring et al., 1995): NICs at level 0; a switch of level i has down[i-1] below it and
// up[i-1] above it (none at the top). Its uplinks together carry what its downlinks do, over the oversubscription.
struct FatTree {
  std::vector<int> down, up;  // up is shorter by one

  static FatTree k_ary(int ports);  // three levels of switches with so many ports: ports^3 / 4 NICs
};
struct LeafSpine {
  int nodes_per_leaf = 1, leaves = 1, spines = 1;
};
// A leaf of its own for each NIC of a node ("rail"); spines join the rails.
struct RailOptimised {
  int nodes_per_leaf = 1, leaves = 1, spines = 1;  // leaves: of each rail
  bool cross_inside = true;  // to another rail through the sender's node (NCCL's PXN), else by spine
};
// Kim et al., "Technology-driven, highly-scalable dragonfly topology" (2008): routers of a group all joined; group i's
// global port q goes to group i + 1 + q mod (groups - 1), ports dealt out to routers in order.
struct Dragonfly {
  int groups = 1, routers = 1, hosts = 1, global_links = 1;  // routers of a group; NICs and global links of a router
  bool valiant = false;                                      // by way of a third group
  LinkRate global_link{};                                    // bandwidth 0: as the others
};
// Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters" (2017): of each group every leaf is joined to
// every spine, and spines to those of other groups, their ports as a dragonfly's.
struct DragonflyPlus {
  int groups = 1, leaves = 1, spines = 1, hosts = 1, global_links = 1;  // of a group; NICs of a leaf; of a spine
  LinkRate global_link{};                                               // bandwidth 0: as the others
};
struct Custom {
  struct Cable {
    std::string from, to;  // "node3", "node3.nic1", or any other word: a switch
    LinkRate link;
    BytesPerSecond back{};  // 0: as there
    int parallel = 1;
    std::string where;  // for errors
  };
  std::vector<Cable> cables;
};

using Outside =
    std::variant<FullyConnected, Torus, FatTree, LeafSpine, RailOptimised, Dragonfly, DragonflyPlus, Custom>;

struct FabricSpec {
  Inside inside;
  Outside network;
  LinkRate link;  // of the network
  Ecmp ecmp = Ecmp::split;
  double background = 0.0;  // share of each link between nodes that others use, below 1
  bool direct = false;  // no NICs: each node is one device, at which the network's links end (nic_bandwidth is theirs)
};

}  // namespace sibyl::fabric

#include "netmodel/collective/protocol.h"

#include <array>

namespace sibyl::collective {
namespace {

constexpr std::array every{Protocol::ll, Protocol::ll128, Protocol::simple};
constexpr std::array without_whole_stores{Protocol::ll, Protocol::simple};
constexpr std::array only_simple{Protocol::simple};

// Microseconds.
struct Latencies {
  double ll = 0.0, ll128 = 0.0, simple = 0.0;

  [[nodiscard]] constexpr double beyond_ll(Protocol protocol) const {
    const double own = protocol == Protocol::ll128 ? ll128 : protocol == Protocol::simple ? simple : ll;
    return (own - ll) * 1e-6;
  }
};

constexpr Latencies base_of_ring{6.6, 14.0, 8.4}, base_of_tree{6.8, 14.0, 8.4};
constexpr Latencies nvlink_ring{0.6, 1.9, 3.4}, nvlink_tree{0.6, 1.25, 4.0};
constexpr Latencies pcie_ring{1.0, 2.5, 5.7}, pcie_tree{1.0, 1.9, 4.0};
constexpr Latencies network_ring{2.7, 4.0, 14.0}, network_tree{5.0, 8.5, 14.0};

// Switches that add, in all and for each level between nodes.
constexpr double adding_node = 25.0, adding_network = 20.9;

}  // namespace

std::span<const Protocol> protocols_of(Collective collective, Algorithm algorithm, LinkKind link) {
  if (link == LinkKind::shared_memory || collective == Collective::all_to_all || collective == Collective::send_receive)
    return {};
  switch (algorithm) {
    case Algorithm::ring:
    case Algorithm::bidirectional_ring:
    case Algorithm::tree:
    case Algorithm::hierarchical:
    case Algorithm::multi_dimensional: break;
    case Algorithm::in_network: return only_simple;
    default: return {};
  }
  if (link == LinkKind::pcie) return without_whole_stores;
  return every;
}

ProtocolCost cost_of(Protocol protocol, Collective collective, Algorithm algorithm, LinkKind link,
                     const GroupPlacement& placement) {
  if (algorithm == Algorithm::in_network)
    return {1.0, (adding_node - base_of_ring.ll - 2 * nvlink_ring.ll) * 1e-6, 0.0,
            (adding_network - network_tree.ll) * 1e-6};
  // Broadcasts and reductions are rings in NCCL.
  const bool tree = algorithm == Algorithm::tree && collective == Collective::all_reduce;
  const bool pcie = link == LinkKind::pcie;
  const Latencies& inside = pcie ? (tree ? pcie_tree : pcie_ring) : (tree ? nvlink_tree : nvlink_ring);
  // Of one rank on each node nothing hides the network's latency: a ring's is taken as a tree's.
  const Latencies& across = tree || placement.ranks_per_node == 1 ? network_tree : network_ring;
  ProtocolCost cost;
  cost.launch = (tree ? base_of_tree : base_of_ring).beyond_ll(protocol);
  cost.inside = inside.beyond_ll(protocol);
  cost.across = across.beyond_ll(protocol);
  if (protocol == Protocol::ll) cost.share = tree ? 1 / 3.8 : 0.5;
  if (protocol == Protocol::ll128) cost.share = tree && placement.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0;
  return cost;
}

}  // namespace sibyl::collective

// A collective as rounds of messages between devices: what each algorithm of netmodel/collective sends, on whom, in
// which order.
//
// All groups of a placement run it at once, side by side over the nodes in use. Rounds that repeat with the same
// messages are one round, so many times. Bytes are shares of an amount: of the whole buffer, of the first chunk of a
// tree, or of the rest that streams after it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "netmodel/collective/imbalance.h"
#include "netmodel/fabric/fabric.h"
#include "netmodel/network.h"

namespace sibyl::fabric {

struct Message {
  int from = 0, to = 0;  // devices of the fabric
  double bytes = 0.0;    // per byte of the round's amount
};

struct Round {
  enum class Kind {
    exchange,   // the longest latency counts
    pipelined,  // parts go round a ring and meet each link's latency in turn: the mean counts
    stream,     // follows a first chunk: no latency
  };
  enum class Of { whole, chunk, rest };

  std::string what;  // "reduce-scatter around the ring"
  int times = 1;
  Kind kind = Kind::exchange;
  Of of = Of::whole;
  std::vector<Message> messages;
  // Of rings, by message: which one of the round before must have arrived. A ring leaves a node by the NIC at which it
  // came, whoever has the last part, so senders do not tell. Empty: all must have that a message's sender receives.
  std::vector<std::uint32_t> after = {};
};

struct Schedule {
  std::vector<Round> rounds;
  double tree_share = 1.0;  // of the buffer that goes through one tree
  double chunk = 0.0;       // bytes

  [[nodiscard]] double amount(Round::Of of, double bytes) const;
};

// Where the groups of a placement lie: ranks on the first devices of consecutive nodes, groups of a node one after
// another, and the same on the nodes after those, as far as there are any in use. Algorithms that go by nodes
// (hierarchical, multi_dimensional) have nodes that lack ranks take part as if they had them.
class Layout {
 public:
  // Beyond this many ranks further nodes are left out: they do the same.
  static constexpr int most_ranks = 16384;

  Layout(const Fabric& fabric, const GroupPlacement& placement, int nodes_in_use);

  [[nodiscard]] const GroupPlacement& placement() const { return placement_; }
  [[nodiscard]] int groups() const { return blocks_ * placement_.groups_per_node; }
  [[nodiscard]] int device(int group, int rank) const;
  [[nodiscard]] int device(int group, int node, int local) const;
  // Parallel rings or trees: one for each NIC that the ranks can use.
  [[nodiscard]] int stripes() const { return stripes_; }
  // The rank of a node at which such a ring or tree enters and leaves it.
  [[nodiscard]] int gate(int node, int stripe) const { return stripe % stripes_ * placement_.on_node(node) / stripes_; }
  // Along which a group's nodes lie: a torus's dimensions, a tree's switches, a dragonfly's routers and groups, as far
  // as they fill them evenly; else all in one. Their product is the nodes, the first varies fastest.
  [[nodiscard]] const std::vector<int>& extents() const { return extents_; }
  // Orders of a group's ranks in a node: Node::rings.
  [[nodiscard]] const std::vector<std::vector<int>>& orders() const { return orders_; }

 private:
  GroupPlacement placement_;
  int nodes_ = 1, per_node_ = 1, blocks_ = 1, stripes_ = 1;
  std::vector<std::vector<int>> orders_;
  std::vector<int> extents_;
};

// What `algorithm` (not automatic) runs for the collective. `chains`: a tree's bytes pass through a node's ranks one
// after another, as GPU libraries do. `between`: what runs between nodes in Algorithm::hierarchical. `imbalance`: of an
// all-to-all; the busiest is the first rank of each group.
Schedule schedule(Collective collective, Algorithm algorithm, const Layout& layout, bool chains,
                  Algorithm between = Algorithm::ring, const collective::Imbalance& imbalance = {});

}  // namespace sibyl::fabric

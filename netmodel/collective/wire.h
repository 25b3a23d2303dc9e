// What the formulas of collectives ask of the network: the time of one round's message, by where the partner sits and
// how many messages leave the node at once. In a round who sends receives, too.
#pragma once

#include <utility>
#include <vector>

#include "netmodel/collective/partners.h"
#include "netmodel/collective/protocol.h"
#include "netmodel/collective/reach.h"
#include "netmodel/network.h"
#include "netmodel/point_to_point.h"
#include "netmodel/ranged.h"
#include "netmodel/topology.h"

namespace sibyl::collective {

// How a message was timed that a round is taken to consist of.
enum class Ways { one, both };

class Wire {
 public:
  Wire(const Topology& topology, const PointToPoint& point_to_point, const ProtocolCost& cost = {},
       Ways ways = Ways::both);

  // Finds the ways now that `formula` asks for, and its partners; it is called with a Wire, and must ask for the same
  // ones whatever the bytes. All else is found anew each time.
  template <class Formula>
  void find_ways(const Formula& formula) {
    Known met;
    Wire scout = *this;
    scout.meets_ = &met;
    formula(std::as_const(scout));
    known_ = std::move(met);
  }

  // Between ranks of one node, `at_once` of them sending.
  [[nodiscard]] Ranged inside(const Ranged& bytes, int at_once) const {
    return over({at_once, 0, {}}, bytes / cost_.share) + cost_.inside;
  }

  // Between nodes of a group spanning `nodes` of them, `flows` messages leaving every node at once. Flows spread over
  // the NICs. What of them climbs above a switch its level's oversubscription narrows, where that is slower.
  [[nodiscard]] Ranged across(const Ranged& bytes, int flows, int nodes, Reach reach) const {
    return over({flows, nodes, reach}, bytes / cost_.share) + cost_.across;
  }

  // What the wire of such a message lets pass at once after a pause.
  [[nodiscard]] TokenBucket bucket(int flows, int nodes, Reach reach) const {
    const Asked asked{flows, nodes, reach};
    const FoundWay* way = found(asked);
    return way != nullptr ? way->bucket() : new_way(asked).bucket();
  }

  // partners(), of one fold and placement for all that is asked of this Wire.
  [[nodiscard]] Partners meet(const Fold& fold, const GroupPlacement& placement, int distance) const;

  // NICs that `ranks` ranks of a node can use for one flow in parallel rings: one each, or its share where a node has
  // more NICs than devices.
  [[nodiscard]] int stripes(int ranks) const;

  // Of `ranks` ranks of a node, those that share one NIC.
  [[nodiscard]] int on_one_nic(int ranks) const;

  // Topology::extents.
  [[nodiscard]] std::vector<int> extents(int nodes) const;
  // Do switches add what passes them, inside a node and between nodes?
  [[nodiscard]] bool reduces_inside() const;
  [[nodiscard]] bool reduces_across() const;

  // Does the library pass a tree's bytes through a node's ranks one after another? Those of GPUs do.
  [[nodiscard]] bool chains() const;

 private:
  // Who sends where; no nodes: inside one.
  struct Asked {
    int flows = 0, nodes = 0;
    Reach reach = {};
    bool operator==(const Asked&) const = default;
  };
  struct Found {
    Asked asked;
    FoundWay way;
  };
  struct Known {
    std::vector<Found> ways;
    std::vector<std::pair<int, Partners>> partners;  // by distance
  };
  [[nodiscard]] const Known& known() const { return meets_ != nullptr ? *meets_ : known_; }
  [[nodiscard]] const FoundWay* found(const Asked& asked) const {
    for (const Found& found : known().ways)
      if (found.asked == asked) return &found.way;
    return nullptr;
  }
  [[nodiscard]] Ranged over(const Asked& asked, const Ranged& bytes) const {
    const FoundWay* way = found(asked);
    return way != nullptr ? way->seconds(bytes) : new_way(asked).seconds(bytes);
  }
  [[nodiscard]] FoundWay new_way(const Asked& asked) const;

  const Topology& topology_;
  const PointToPoint& messages_;
  ProtocolCost cost_;
  bool both_ways_;
  int nics_per_rank_;
  Known known_;
  Known* meets_ = nullptr;  // while ways are being found
};

}  // namespace sibyl::collective

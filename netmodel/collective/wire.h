// What the formulas of collectives ask of the network: the time of one round's message, by where the partner sits and
// how many messages leave the node at once. In a round who sends receives, too.
#pragma once

#include <vector>

#include "netmodel/collective/protocol.h"
#include "netmodel/network.h"
#include "netmodel/point_to_point.h"
#include "netmodel/topology.h"

namespace sibyl::collective {

// How a message was timed that a round is taken to consist of.
enum class Ways { one, both };

class Wire {
 public:
  Wire(const Topology& topology, const PointToPoint& point_to_point, const ProtocolCost& cost = {},
       Ways ways = Ways::both)
      : topology_(topology), messages_(point_to_point), cost_(cost), both_ways_(ways == Ways::both) {}

  // Between ranks of one node, `at_once` of them sending.
  [[nodiscard]] double inside(double bytes, int at_once) const {
    return messages_.seconds(bytes / cost_.share, {0, at_once, both_ways_}) + cost_.inside;
  }

  // Between nodes of a group spanning `nodes` of them, `flows` messages leaving every node at once. Flows spread over
  // the NICs. `far`: all of them climb to the top of that span, so each level's oversubscription narrows them; else
  // they go to neighbours and hardly meet.
  [[nodiscard]] double across(double bytes, int flows, int nodes, bool far) const;

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
  const Topology& topology_;
  const PointToPoint& messages_;
  ProtocolCost cost_;
  bool both_ways_;
};

}  // namespace sibyl::collective

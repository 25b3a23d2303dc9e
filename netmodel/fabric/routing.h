// Which edges may carry a message on, towards where it goes: a rule for each kind of fabric, in closed form where the
// fabric is regular, so that nothing is kept for each pair.
//
// Rules give all that are equally good, in a fixed order; walk() chooses among them as Ecmp says. No rule can send a
// message round in a circle: each edge it offers leads nearer.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <variant>
#include <vector>

#include "netmodel/fabric/graph.h"

namespace sibyl::fabric {

// Up to the first switch above both, then down: to a parent that any of them may be, to the one child that leads there.
// Vertices of a level are numbered in a row: switch `copy` of the copies[level] that stand above the same terminals.
struct UpDown {
  std::vector<int> down, up;  // of level i + 1 and i
  std::vector<VertexId> first;
  std::vector<std::int64_t> below, copies;  // terminals under, and switches beside, one of each level
  bool bundled = false;                     // one channel for all that messages are split over

  void next(const Graph& graph, VertexId at, VertexId target, std::vector<EdgeId>& out) const;
};

// Routers, each with as many terminals; without NICs the router is the terminal.
struct Routers {
  VertexId first = 0, first_terminal = 0;
  int count = 0, terminals_each = 0;  // 0: direct
  std::vector<EdgeId> up, down;       // of each terminal

  [[nodiscard]] bool is_router(VertexId v) const { return v >= first && v < first + static_cast<VertexId>(count); }
  [[nodiscard]] int router_of(VertexId v) const;
  // The edge between a router and its terminal, if that is all that is left (or first) to go.
  [[nodiscard]] bool at_edge_of_network(VertexId at, VertexId target, std::vector<EdgeId>& out) const;
};

// The dimensions one after another, the shorter way round; where both are as long, either.
struct DimensionOrder {
  Routers routers;
  std::vector<int> dimensions;
  bool wraps = true;
  std::vector<std::int64_t> edges;  // [router][dimension][forward, back]; -1: none

  void next(const Graph& graph, VertexId at, VertexId target, std::vector<EdgeId>& out) const;
};

struct Neighbours {
  Routers routers;
  std::vector<std::int64_t> edges;  // [router][router]

  void next(const Graph& graph, VertexId at, VertexId target, std::vector<EdgeId>& out) const;
};

// To the router with a global link to the group, over it, to the router.
struct Minimal {
  Routers routers;
  int groups = 1, routers_each = 1, global_each = 1;  // global_each: of a router
  bool valiant = false;
  std::vector<std::int64_t> local, global;  // [router][router of the group], [group][port]

  void next(const Graph& graph, VertexId at, VertexId target, std::vector<EdgeId>& out) const;
  void next_to_group(VertexId at, int group, std::vector<EdgeId>& out) const;
  [[nodiscard]] int group_of(VertexId v) const { return routers.router_of(v) / routers_each; }
};

// Leaves with terminals below the spines of their group, which have the links to other groups: up to a spine that has
// one to the group (in the group: to any), over it, and down.
struct LeafSpineGroups {
  Routers routers;  // the leaves
  VertexId first_spine = 0;
  int groups = 1, leaves_each = 1, spines_each = 1, global_each = 1;  // global_each: of a spine
  std::vector<std::int64_t> local, global;                            // [leaf][spine of the group], [group][port]

  void next(const Graph& graph, VertexId at, VertexId target, std::vector<EdgeId>& out) const;

 private:
  [[nodiscard]] std::int64_t up(int leaf, int spine) const {
    return local[static_cast<std::size_t>(leaf) * static_cast<std::size_t>(spines_each) +
                 static_cast<std::size_t>(spine)];
  }
  // The ports of a group that lead to another one, as port numbers.
  template <class Use>
  void for_ports(int own, int group, Use use) const;
};

// Fewest hops; from tables of the hops from everywhere to each target.
struct ShortestPath {
  std::vector<bool> through;  // what may be passed
  std::unordered_map<VertexId, std::vector<int>> hops;

  void add_target(const Graph& graph, VertexId target) { hops[target] = graph.hops_from(target, through); }
  void next(const Graph& graph, VertexId at, VertexId target, std::vector<EdgeId>& out) const;
};

using Routing = std::variant<UpDown, DimensionOrder, Neighbours, Minimal, LeafSpineGroups, ShortestPath>;

struct Step {
  EdgeId edge = 0;
  double share = 1.0;  // of the message
};

// Appends the way of `share` of a message; `key` tells flows with the same ends apart.
void walk(const Graph& graph, const Routing& routing, VertexId from, VertexId to, Ecmp ecmp, std::uint64_t key,
          double share, std::vector<Step>& steps);

// Well-mixed bits (Steele et al., SplitMix64, 2014): the same everywhere.
std::uint64_t mixed(std::uint64_t value);

}  // namespace sibyl::fabric

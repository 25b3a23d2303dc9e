#include <algorithm>

#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {
namespace {

// One edge of a tree, towards the root (or away), and how far its upper end is from it.
struct Branch {
  int child = 0, parent = 0, depth = 0;
};

std::vector<Branch> branches(int size, bool second) {
  const auto place = [&](int rank) {
    return second ? collective::TreePlace::second(size, rank) : collective::TreePlace::of(size, rank);
  };
  std::vector<Branch> result;
  for (int rank = 0; rank < size; ++rank) {
    if (place(rank).parent < 0) continue;
    int depth = 0;
    for (int up = place(rank).parent; place(up).parent >= 0; up = place(up).parent) ++depth;
    result.push_back({rank, place(rank).parent, depth});
  }
  return result;
}

// What flows along the branches of both trees (or of the only one): each over `stripes` places in a node.
struct Limb {
  Message message;
  int depth = 0;  // -1: of a chain inside a node
};

std::vector<Limb> limbs(const Layout& layout, int group, bool chains, bool two_trees, bool upwards) {
  const auto [ranks, nodes, groups, missing] = layout.placement();
  std::vector<Limb> result;
  const auto add = [&](int child, int parent, double bytes, int depth) {
    result.push_back({upwards ? Message{child, parent, bytes} : Message{parent, child, bytes}, depth});
  };
  const bool chained = chains && ranks > 1;
  const auto orders = static_cast<int>(layout.orders().size());
  const int stripes = chained ? layout.stripes() : 1, trees = two_trees ? 2 : 1;
  for (int tree = 0; tree < trees; ++tree)
    for (int stripe = 0; stripe < stripes; ++stripe) {
      const double bytes = 1.0 / stripes;
      if (chained) {
        const int ring = (tree * stripes + stripe) % orders;
        const std::vector<int>& all = layout.orders()[static_cast<std::size_t>(ring)];
        for (int node = 0; node < nodes; ++node) {
          const std::vector<int> order = from_gate(all, layout.placement().on_node(node), layout.gate(node, stripe));
          for (std::size_t i = 1; i < order.size(); ++i)
            add(layout.device(group, node, order[i]), layout.device(group, node, order[i - 1]), bytes, -1);
        }
        const auto gate_of = [&](int node) { return layout.device(group, node, layout.gate(node, stripe)); };
        for (const Branch& b : branches(nodes, tree == 1)) add(gate_of(b.child), gate_of(b.parent), bytes, b.depth);
      } else {
        for (const Branch& b : branches(layout.placement().size(), tree == 1))
          add(layout.device(group, b.child), layout.device(group, b.parent), bytes, b.depth);
      }
    }
  return result;
}

}  // namespace

void tree(Rounds& rounds, Collective collective, const Layout& layout, int group, bool chains) {
  const bool both = collective == Collective::all_reduce;
  const std::vector<Limb> all = limbs(layout, group, chains, both, collective != Collective::broadcast);
  int deepest = -1;
  for (const Limb& limb : all) deepest = std::max(deepest, limb.depth);
  const int times = both ? 2 : 1, hops = layout.placement().ranks_per_node - 1;
  const auto add = [&](const std::string& what, int count, Round::Kind kind, Round::Of of, auto&& wanted) {
    Round& round = rounds.add(what, count, kind, of);
    for (const Limb& limb : all)
      if (wanted(limb)) round.messages.push_back(limb.message);
  };
  const char* way = both ? " (up and down)" : "";
  if (chains && hops > 0)
    add(std::string("the first chunk along a node's chain") + way, times * hops, Round::Kind::pipelined,
        Round::Of::chunk, [](const Limb& limb) { return limb.depth < 0; });
  for (int depth = deepest; depth >= 0; --depth)
    add("the first chunk over level " + std::to_string(depth + 1) + " of the tree" + way, times, Round::Kind::exchange,
        Round::Of::chunk, [&](const Limb& limb) { return limb.depth == depth; });
  add(std::string("the rest over all of it") + way, times, Round::Kind::stream, Round::Of::rest,
      [](const Limb&) { return true; });
}

}  // namespace sibyl::fabric

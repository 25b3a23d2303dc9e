#include "netmodel/fabric/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "netmodel/collective/partition.h"

namespace sibyl::fabric {
namespace {

constexpr int most_messages = 1 << 19;  // of an all-to-all; beyond, some of its shifts stand for all

// Rounds of one group; the others' are alike and join them.
class Rounds {
 public:
  Round& add(const std::string& what, int times = 1, Round::Kind kind = Round::Kind::exchange,
             Round::Of of = Round::Of::whole) {
    if (next_ == rounds.size()) rounds.push_back({what, times, kind, of, {}});
    return rounds[next_++];
  }
  Round& last() { return rounds[next_ - 1]; }
  void next_group() { next_ = 0; }

  std::vector<Round> rounds;

 private:
  std::size_t next_ = 0;
};

using At = std::function<int(int rank)>;  // the device of a rank

const char* halves(Collective collective) {
  if (collective == Collective::all_reduce) return "reduce-scatter, then all-gather, around the ring";
  return collective == Collective::reduce_scatter ? "reduce-scatter around the ring" : "all-gather around the ring";
}

// Ranks of one node, or single ranks of several: `share` of the bytes goes round over each order of them.
void flat_ring(Rounds& rounds, Collective collective, double share, int size, const At& at,
               const std::vector<std::vector<int>>& orders) {
  if (size < 2) return;
  const int times = (size - 1) * (collective == Collective::all_reduce ? 2 : 1);
  Round& round = rounds.add(halves(collective), times, Round::Kind::pipelined);
  const double bytes = share / size / static_cast<double>(orders.size());
  for (const auto& order : orders)
    for (std::size_t i = 0; i < order.size(); ++i)
      round.messages.push_back({at(order[i]), at(order[(i + 1) % order.size()]), bytes});
}

std::vector<int> in_order(int size) {
  std::vector<int> order(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) order[static_cast<std::size_t>(i)] = i;
  return order;
}

// The ring, from where it enters the node.
std::vector<int> from_gate(std::vector<int> ring, int gate) {
  std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), gate), ring.end());
  return ring;
}

// Over several nodes: each ring enters a node at one device and goes on from it, so that rings keep to their NICs.
void ring(Rounds& rounds, Collective collective, const Layout& layout, int group) {
  const auto [ranks, nodes, groups] = layout.placement();
  const At at = [&](int rank) { return layout.device(group, rank); };
  if (nodes == 1) return flat_ring(rounds, collective, 1.0, ranks, at, layout.orders());
  if (ranks == 1) return flat_ring(rounds, collective, 1.0, nodes, at, {in_order(nodes)});
  const int size = ranks * nodes, orders = static_cast<int>(layout.orders().size());
  const int rings = std::max(layout.stripes(), orders);
  Round& round = rounds.add(halves(collective), (size - 1) * (collective == Collective::all_reduce ? 2 : 1),
                            Round::Kind::pipelined);
  const double bytes = 1.0 / size / rings;
  for (int i = 0; i < rings; ++i) {
    const int gate = i % layout.stripes() * ranks / layout.stripes();
    const std::vector<int> order = from_gate(layout.orders()[static_cast<std::size_t>(i % orders)], gate);
    for (int node = 0; node < nodes; ++node) {
      for (std::size_t k = 0; k + 1 < order.size(); ++k)
        round.messages.push_back(
            {layout.device(group, node, order[k]), layout.device(group, node, order[k + 1]), bytes});
      round.messages.push_back(
          {layout.device(group, node, gate), layout.device(group, (node + 1) % nodes, gate), bytes});
    }
  }
}

void fold(Rounds& rounds, const collective::Fold& fold, double bytes, const At& at, bool back) {
  if (fold.extra == 0) return;
  Round& round = rounds.add(back ? "sums go back to those that folded" : "fold to a power of two");
  for (int rank = 0; rank < 2 * fold.extra; rank += 2)
    round.messages.push_back(back ? Message{at(rank + 1), at(rank), bytes} : Message{at(rank), at(rank + 1), bytes});
}

void exchange(Rounds& rounds, const std::string& what, const collective::Fold& fold, int distance,
              const std::function<double(int number)>& bytes, const At& at) {
  Round& round = rounds.add(what);
  for (int number = 0; number < fold.core; ++number)
    round.messages.push_back({at(fold.outer(number)), at(fold.outer(number ^ distance)), bytes(number)});
}

void recursive_doubling(Rounds& rounds, int size, const At& at) {
  const collective::Fold core = collective::Fold::of(size);
  fold(rounds, core, 1.0, at, false);
  for (int distance = 1; distance < core.core; distance *= 2)
    exchange(
        rounds, "exchange all with the rank at distance " + std::to_string(distance), core, distance,
        [](int) { return 1.0; }, at);
  fold(rounds, core, 1.0, at, true);
}

void rabenseifner(Rounds& rounds, double share, int size, const At& at) {
  const collective::Fold core = collective::Fold::of(size);
  fold(rounds, core, share, at, false);
  std::vector<collective::Halving> held(static_cast<std::size_t>(core.core), collective::Halving(core.core));
  const auto bytes_of = [&](const collective::Range& parts) {
    return share * static_cast<double>(parts.size()) / core.core;
  };
  const auto held_by = [&](int number) -> collective::Halving& { return held[static_cast<std::size_t>(number)]; };
  int steps = 0;
  for (int distance = 1; distance < core.core; distance *= 2, ++steps) {
    exchange(
        rounds, "halving with the rank at distance " + std::to_string(distance), core, distance,
        [&](int number) { return bytes_of(held_by(number).given(number, steps)); }, at);
    for (int number = 0; number < core.core; ++number) held_by(number).parts = held_by(number).kept(number, steps);
  }
  double parts = share / core.core;
  for (int distance = core.core / 2; distance >= 1; distance /= 2, parts *= 2)
    exchange(
        rounds, "doubling with the rank at distance " + std::to_string(distance), core, distance,
        [&](int) { return parts; }, at);
  fold(rounds, core, share, at, true);
}

// One edge of a tree, towards the root (or away), and how far its upper end is from it.
struct Branch {
  int child = 0, parent = 0, depth = 0;
};

std::vector<Branch> branches(int size, bool mirrored) {
  const auto place = [&](int rank) {
    return mirrored ? collective::TreePlace::mirrored(size, rank) : collective::TreePlace::of(size, rank);
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
  const auto [ranks, nodes, groups] = layout.placement();
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
      const int gate = stripe * ranks / stripes;
      if (chained) {
        const int ring = (tree * stripes + stripe) % orders;
        const std::vector<int> order = from_gate(layout.orders()[static_cast<std::size_t>(ring)], gate);
        for (int node = 0; node < nodes; ++node)
          for (std::size_t i = 1; i < order.size(); ++i)
            add(layout.device(group, node, order[i]), layout.device(group, node, order[i - 1]), bytes, -1);
        for (const Branch& b : branches(nodes, tree == 1))
          add(layout.device(group, b.child, gate), layout.device(group, b.parent, gate), bytes, b.depth);
      } else {
        for (const Branch& b : branches(ranks * nodes, tree == 1))
          add(layout.device(group, b.child), layout.device(group, b.parent), bytes, b.depth);
      }
    }
  return result;
}

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

void binomial_broadcast(Rounds& rounds, int size, const At& at) {
  for (int distance = 1; distance < size; distance *= 2) {
    Round& round = rounds.add("hand on to the rank " + std::to_string(distance) + " above");
    for (int rank = 0; rank < distance && rank + distance < size; ++rank)
      round.messages.push_back({at(rank), at(rank + distance), 1.0});
  }
}

void hierarchical(Rounds& rounds, Collective collective, const Layout& layout, int group, Algorithm between) {
  const auto [ranks, nodes, groups] = layout.placement();
  for (int node = 0; node < nodes; ++node) {
    // All nodes at once: one round.
    Rounds here;
    flat_ring(
        here, collective, 1.0, ranks, [&, node = node](int rank) { return layout.device(group, node, rank); },
        layout.orders());
    if (here.rounds.empty()) continue;
    if (node == 0)
      rounds.add(std::string(halves(collective)) + " of a node", here.rounds[0].times, here.rounds[0].kind);
    std::ranges::copy(here.rounds[0].messages, std::back_inserter(rounds.last().messages));
  }
  std::vector<Round> joined;
  for (int local = 0; local < ranks; ++local) {
    const At at = [&, local = local](int node) { return layout.device(group, node, local); };
    Rounds here;
    if (between == Algorithm::rabenseifner && collective == Collective::all_reduce)
      rabenseifner(here, 1.0 / ranks, nodes, at);
    else
      flat_ring(here, collective, 1.0 / ranks, nodes, at, {in_order(nodes)});
    if (joined.empty()) {
      joined = std::move(here.rounds);
      continue;
    }
    for (std::size_t i = 0; i < joined.size(); ++i)
      std::ranges::copy(here.rounds[i].messages, std::back_inserter(joined[i].messages));
  }
  for (const Round& round : joined) {
    Round& mine = rounds.add("between nodes: " + round.what, round.times, round.kind);
    std::ranges::copy(round.messages, std::back_inserter(mine.messages));
  }
}

// A ring along each dimension after the other, with what is left of the bytes; and back again over the same links.
void multi_dimensional(Rounds& rounds, Collective collective, const Layout& layout, int group) {
  const int ranks = layout.placement().ranks_per_node, nodes = layout.placement().nodes;
  const auto along = [&](const std::string& what, int extent, double share, auto&& each_line) {
    if (extent < 2) return;
    Round& round = rounds.add(std::string(halves(collective)) + what,
                              (extent - 1) * (collective == Collective::all_reduce ? 2 : 1), Round::Kind::pipelined);
    each_line([&](int from, int to, double part) { round.messages.push_back({from, to, share / extent * part}); });
  };
  along(" of a node", ranks, 1.0, [&](auto&& send) {
    const auto& orders = layout.orders();
    for (int node = 0; node < nodes; ++node)
      for (const std::vector<int>& order : orders)
        for (std::size_t i = 0; i < order.size(); ++i)
          send(layout.device(group, node, order[i]), layout.device(group, node, order[(i + 1) % order.size()]),
               1.0 / static_cast<double>(orders.size()));
  });
  double share = 1.0 / ranks;
  int stride = 1, number = 0;
  for (const int extent : layout.extents()) {
    along(" of dimension " + std::to_string(++number), extent, share, [&](auto&& send) {
      for (int node = 0; node < nodes; ++node) {
        const int at = node / stride % extent, next = at + 1 < extent ? node + stride : node - at * stride;
        for (int local = 0; local < ranks; ++local)
          send(layout.device(group, node, local), layout.device(group, next, local), 1.0);
      }
    });
    share /= extent;
    stride *= extent;
  }
}

// m/p to each other rank, all at once. Of a large group some shifts (to the rank so much further on) stand for all.
void all_to_all(Rounds& rounds, int size, const At& at, int groups) {
  Round& round = rounds.add("a part to each other rank, all at once");
  const int shifts = std::clamp(most_messages / std::max(1, size * groups), std::min(8, size - 1), size - 1);
  const double bytes = static_cast<double>(size - 1) / size / shifts;
  for (int i = 0; i < shifts; ++i) {
    const int shift = 1 + static_cast<int>((i + 0.5) * (size - 1) / shifts);
    for (int rank = 0; rank < size; ++rank) round.messages.push_back({at(rank), at((rank + shift) % size), bytes});
  }
}

// Ranks in a line: all to the only neighbour, or half to each of two.
void with_neighbours(Rounds& rounds, int size, const At& at) {
  Round& round = rounds.add("with the neighbours, both ways at once");
  for (int rank = 0; rank + 1 < size; ++rank) {
    round.messages.push_back({at(rank), at(rank + 1), size == 2 ? 1.0 : 0.5});
    round.messages.push_back({at(rank + 1), at(rank), size == 2 ? 1.0 : 0.5});
  }
}

}  // namespace

double Schedule::amount(Round::Of of, double bytes) const {
  const double through_tree = tree_share * bytes, first = std::min(through_tree, chunk);
  return of == Round::Of::whole ? bytes : of == Round::Of::chunk ? first : through_tree - first;
}

namespace {

// How many nodes, or groups of them, lie side by side: from the nearest outwards.
std::vector<int> levels_of(const Outside& network, int nics) {
  if (const auto* torus = std::get_if<Torus>(&network)) return torus->dimensions;
  if (const auto* tree = std::get_if<LeafSpine>(&network)) return {tree->nodes_per_leaf, tree->leaves};
  if (const auto* rails = std::get_if<RailOptimised>(&network)) return {rails->nodes_per_leaf, rails->leaves};
  if (const auto* tree = std::get_if<FatTree>(&network); tree != nullptr && tree->down.front() % nics == 0) {
    std::vector<int> levels = tree->down;
    levels.front() /= nics;
    return levels;
  }
  if (const auto* fly = std::get_if<Dragonfly>(&network); fly != nullptr && fly->hosts % nics == 0)
    return {fly->hosts / nics, fly->routers, fly->groups};
  return {};
}

// Whole levels, and a divisor of the next; else all in one.
std::vector<int> extents_of(const std::vector<int>& levels, int nodes) {
  std::vector<int> extents;
  int left = nodes;
  for (const int level : levels) {
    const int extent = std::min(left, level);
    if (left % extent != 0) return {nodes};
    if (extent > 1) extents.push_back(extent);
    left /= extent;
  }
  return left == 1 ? extents : std::vector<int>{nodes};
}

}  // namespace

Layout::Layout(const Fabric& fabric, const GroupPlacement& placement, int nodes_in_use)
    : placement_(placement), nodes_(fabric.nodes()), per_node_(fabric.devices_per_node()) {
  const double of_block = static_cast<double>(placement.size()) * placement.groups_per_node;
  const int fit = std::max(1, std::min(nodes_in_use, nodes_) / placement.nodes);
  blocks_ = std::clamp(static_cast<int>(most_ranks / of_block), 1, fit);
  const int nics = fabric.spec().direct ? 1 : fabric.node().nics();
  stripes_ = std::clamp(nics, 1, placement.ranks_per_node);
  orders_ = fabric.node().rings(0, placement.ranks_per_node);
  extents_ = extents_of(levels_of(fabric.spec().network, nics), placement.nodes);
}

// A group that is larger than what there is goes round it once more: samples of larger machines are carried so.
int Layout::device(int group, int node, int local) const {
  const int block = group / placement_.groups_per_node, place = group % placement_.groups_per_node;
  const int at = (block * placement_.nodes + node) % nodes_;
  return at * per_node_ + (place * placement_.ranks_per_node + local) % per_node_;
}

Schedule schedule(Collective collective, Algorithm algorithm, const Layout& layout, bool chains, Algorithm between) {
  Rounds rounds;
  const int size = layout.placement().size();
  for (int group = 0; group < layout.groups(); ++group, rounds.next_group()) {
    const At at = [&, group = group](int rank) { return layout.device(group, rank); };
    if (collective == Collective::all_to_all)
      all_to_all(rounds, size, at, layout.groups());
    else if (collective == Collective::send_receive)
      with_neighbours(rounds, size, at);
    else if (algorithm == Algorithm::recursive_doubling)
      recursive_doubling(rounds, size, at);
    else if (algorithm == Algorithm::rabenseifner)
      rabenseifner(rounds, 1.0, size, at);
    else if (algorithm == Algorithm::tree)
      tree(rounds, collective, layout, group, chains);
    else if (algorithm == Algorithm::hierarchical)
      hierarchical(rounds, collective, layout, group, between);
    else if (algorithm == Algorithm::multi_dimensional)
      multi_dimensional(rounds, collective, layout, group);
    else if (algorithm == Algorithm::gloo && collective == Collective::broadcast)
      binomial_broadcast(rounds, size, at);
    else
      ring(rounds, collective, layout, group);
  }
  Schedule result{std::move(rounds.rounds), 1.0,
                  static_cast<double>(chains ? collective::gpu_tree_chunk_bytes : collective::tree_chunk_bytes)};
  if (collective == Collective::all_reduce) result.tree_share = 0.5;
  return result;
}

}  // namespace sibyl::fabric

#include <algorithm>

#include "netmodel/fabric/schedule.h"

namespace sibyl::fabric {
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
  if (const auto* fly = std::get_if<DragonflyPlus>(&network); fly != nullptr && fly->hosts % nics == 0)
    return {fly->hosts / nics, fly->leaves, fly->groups};
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
  stripes_ = std::clamp(nics, 1, placement.fewest_on_a_node());
  orders_ = fabric.node().rings(0, placement.ranks_per_node);
  extents_ = extents_of(levels_of(fabric.spec().network, nics), placement.nodes);
}

// Full nodes come first; of those behind them each has to be looked at.
int Layout::device(int group, int rank) const {
  const int each = placement_.ranks_per_node, missing = placement_.missing;
  const int lacking = missing > 0 ? (missing + each - 2) / (each - 1) : 0;  // nodes, each of which can lack all but one
  int node = std::min(rank / each, placement_.nodes - lacking), local = rank - node * each;
  while (local >= placement_.on_node(node)) {
    local -= placement_.on_node(node);
    ++node;
  }
  return device(group, node, local);
}

// A group that is larger than what there is goes round it once more: samples of larger machines are carried so.
int Layout::device(int group, int node, int local) const {
  const int block = group / placement_.groups_per_node, place = group % placement_.groups_per_node;
  const int at = (block * placement_.nodes + node) % nodes_;
  return at * per_node_ + (place * placement_.ranks_per_node + local) % per_node_;
}

}  // namespace sibyl::fabric

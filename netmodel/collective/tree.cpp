// Two binary trees, each with half of the vector, pipelined in chunks: an inner rank of one tree is a leaf of the
// other, so every rank sends and receives about m on the way up and m on the way down.
//
// Time: the first chunk climbs and descends ceil(log2 p) levels (those inside a node, then those between nodes; GPU
// libraries chain the ranks of a node instead, g - 1 hops); the rest follows at the pace of the slowest link. Of two
// ranks (or nodes) each is the root of one tree and the leaf of the other and passes only m/2 each way. Broadcast and
// reduce use one tree, one way: an inner rank sends (or receives) each byte twice, but in a chain once.
#include <bit>

#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"

namespace sibyl::collective {
namespace {

int levels(int count) { return std::bit_width(static_cast<unsigned>(count - 1)); }

TreePlace in_order(int size, int rank) {
  TreePlace place;
  const auto add = [&](int child) { place.children[place.children[0] < 0 ? 0 : 1] = child; };
  if (rank == 0) {
    // The root has one child: the rank of the highest bit.
    if (size > 1) add(static_cast<int>(std::bit_floor(static_cast<unsigned>(size - 1))));
    return place;
  }
  const int bit = rank & -rank;
  const int up = (rank ^ bit) | (bit << 1);
  place.parent = up < size ? up : rank ^ bit;
  if (bit > 1) {
    add(rank - bit / 2);
    // The right child is the highest subtree root that still exists.
    for (int low = bit / 2; low > 0; low /= 2)
      if (rank + low < size) {
        add(rank + low);
        break;
      }
  }
  return place;
}

}  // namespace

TreePlace TreePlace::of(int size, int rank) { return in_order(size, rank); }

TreePlace TreePlace::second(int size, int rank) {
  const bool even = size % 2 == 0;
  const auto there = [&](int other) { return even ? size - 1 - other : (other + size - 1) % size; };
  const auto back = [&](int& other) { other = other < 0 ? -1 : even ? size - 1 - other : (other + 1) % size; };
  TreePlace place = in_order(size, there(rank));
  back(place.parent);
  for (int& child : place.children) back(child);
  return place;
}

Ranged tree_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups, missing] = job.placement;
  const bool both_ways = job.collective == Collective::all_reduce;
  const Ranged per_tree = both_ways ? job.bytes / 2 : job.bytes;
  const Ranged chunk = min(per_tree, static_cast<double>(wire.chains() ? gpu_tree_chunk_bytes : tree_chunk_bytes));
  Ranged climb, pace;  // of one chunk; of all bytes that a rank passes on, one way
  Ranged emptied;      // what a token bucket makes of both ways, one after the other
  // Both trees together carry m through a rank one way; one tree carries m twice through an inner rank.
  const auto through_each = [&](int count) {
    return (both_ways ? 1.0 : 2.0) * (count > 2 ? job.bytes : job.bytes / 2);
  };
  if (ranks > 1) {
    const bool handed_on = wire.chains() && !both_ways;  // to one other
    const Ranged through = handed_on ? job.bytes : through_each(job.placement.size());
    climb += (wire.chains() ? ranks - 1 : levels(ranks)) * wire.inside(chunk, ranks * groups);
    pace = wire.inside(through, ranks * groups) - wire.inside(min(chunk, through), ranks * groups);
  }
  if (nodes > 1) {
    const Ranged through = through_each(nodes);
    const int stripes = wire.stripes(job.placement.fewest_on_a_node());
    const auto link = [&, nodes = nodes, groups = groups](const Ranged& bytes) {
      return wire.across(bytes / stripes, stripes * groups, nodes, up_a_tree);
    };
    climb += levels(nodes) * link(chunk);
    pace = max(pace, link(through) - link(min(chunk, through)));
    if (both_ways)
      emptied = wire.bucket(stripes * groups, nodes, up_a_tree).rounds(link(through), through / stripes, 2);
  }
  return max((both_ways ? 2 : 1) * (climb + pace), emptied);
}

std::int64_t tree_elements(Collective collective, std::int64_t elements, int size, int rank) {
  const TreePlace place = TreePlace::of(size, rank);
  const std::int64_t up = place.parent >= 0 ? 1 : 0;
  if (collective == Collective::broadcast) return place.child_count() * elements;
  if (collective == Collective::reduce) return up * elements;
  const TreePlace other = TreePlace::second(size, rank);
  const std::int64_t other_up = other.parent >= 0 ? 1 : 0;
  return (up + place.child_count()) * part(elements, 2, 0).size() +
         (other_up + other.child_count()) * part(elements, 2, 1).size();
}

}  // namespace sibyl::collective

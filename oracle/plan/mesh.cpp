#include <algorithm>
#include <numeric>
#include <utility>

#include "oracle/plan/plan.h"

namespace sibyl {

int Mesh::size() const {
  int product = 1;
  for (const Extent& extent : extents) product *= extent.size;
  return product;
}

int Mesh::size(MeshAxis axis) const {
  for (const Extent& extent : extents)
    if (extent.axis == axis) return extent.size;
  return 1;
}

int Mesh::stride(MeshAxis axis) const {
  int product = 1;
  for (const Extent& extent : extents) {
    if (extent.axis == axis) break;
    product *= extent.size;
  }
  return product;
}

int Mesh::coordinate(int rank, MeshAxis axis) const { return rank / stride(axis) % size(axis); }

std::vector<int> Mesh::group(int rank, MeshAxis axis) const {
  const int step = stride(axis);
  const int first = rank - coordinate(rank, axis) * step;
  std::vector<int> ranks(static_cast<std::size_t>(size(axis)));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = first + static_cast<int>(i) * step;
  return ranks;
}

std::vector<int> Mesh::group(int rank, std::span<const MeshAxis> axes) const {
  std::vector<int> ranks = {rank};
  for (const MeshAxis axis : axes) {
    std::vector<int> wider;
    for (const int member : ranks)
      for (const int other : group(member, axis)) wider.push_back(other);
    ranks = std::move(wider);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

namespace {

// Of so many ranks.
GroupPlacement on_nodes(int members, int nodes, int most_of_a_node, int groups_of_a_node) {
  return {most_of_a_node, nodes, groups_of_a_node, most_of_a_node * nodes - members};
}

// Rank by rank: of the groups with the most nodes, which are the slowest, the most ranks on one; and the most groups
// that share a node's NICs, which those do not that lie in it.
GroupPlacement irregular_placement(const Mesh& mesh, MeshAxis axis, int devices_per_node) {
  struct Spread {
    int nodes = 0, here = 0, most = 0;  // ranks on the node that was looked at last, and on any
  };
  const int members = mesh.size(axis), stride = mesh.stride(axis);
  // Then nodes and groups lie as before.
  const std::int64_t period = std::lcm<std::int64_t>(std::int64_t{stride} * members, devices_per_node);
  const int ranks = static_cast<int>(std::min<std::int64_t>(mesh.size(), period));
  std::vector<Spread> groups(static_cast<std::size_t>(ranks));  // by their first ranks
  const auto coordinate = [&](int rank) { return rank / stride % members; };
  const auto group_of = [&](int rank) -> Spread& {
    return groups[static_cast<std::size_t>(rank - coordinate(rank) * stride)];
  };
  const auto comes_to_a_node = [&](int rank) {  // and is not with the member before
    return coordinate(rank) == 0 || (rank - stride) / devices_per_node != rank / devices_per_node;
  };
  for (int rank = 0; rank < ranks; ++rank) {
    Spread& group = group_of(rank);
    if (comes_to_a_node(rank)) ++group.nodes, group.here = 0;
    group.most = std::max(group.most, ++group.here);
  }
  std::vector<int> sharing(static_cast<std::size_t>(ranks / devices_per_node) + 1);  // groups, by node
  Spread slowest;
  for (int rank = 0; rank < ranks; ++rank) {
    const Spread& group = group_of(rank);
    if (comes_to_a_node(rank) && group.nodes > 1) ++sharing[static_cast<std::size_t>(rank / devices_per_node)];
    if (std::pair(group.nodes, group.most) > std::pair(slowest.nodes, slowest.most)) slowest = group;
  }
  return on_nodes(members, slowest.nodes, slowest.most, std::max(1, *std::max_element(sharing.begin(), sharing.end())));
}

}  // namespace

// Ranks fill nodes of g devices in order. Of a group with stride s a node has g / s members, all n if they fit, where g
// and s n divide one another.
GroupPlacement placement(const Mesh& mesh, MeshAxis axis, int devices_per_node) {
  const int members = mesh.size(axis), stride = mesh.stride(axis), used = std::min(devices_per_node, mesh.size());
  const bool fits = used == mesh.size() || devices_per_node % (stride * members) == 0;
  const bool even = stride * members % devices_per_node == 0 &&
                    (stride % devices_per_node == 0 || devices_per_node % stride == 0);
  if (!fits && !even) return irregular_placement(mesh, axis, devices_per_node);
  GroupPlacement result;
  result.ranks_per_node = fits ? members : std::max(1, devices_per_node / stride);
  result.nodes = members / result.ranks_per_node;
  result.groups_per_node = used / result.ranks_per_node;
  return result;
}

GroupPlacement placement(const Mesh& mesh, std::span<const MeshAxis> axes, int devices_per_node) {
  if (axes.size() == 1) return placement(mesh, axes.front(), devices_per_node);
  return placement(mesh, mesh.group(0, axes), devices_per_node);
}

GroupPlacement placement(const Mesh& mesh, const std::vector<int>& group, int devices_per_node) {
  int nodes = 0, here = 0, most = 0, node = -1;
  for (const int rank : group) {
    if (rank / devices_per_node != node) node = rank / devices_per_node, here = 0, ++nodes;
    most = std::max(most, ++here);
  }
  return on_nodes(static_cast<int>(group.size()), nodes, most,
                  std::max(1, std::min(devices_per_node, mesh.size()) / most));
}

}  // namespace sibyl

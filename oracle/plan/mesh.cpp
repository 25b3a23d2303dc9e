#include <algorithm>
#include <numeric>

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

// Rank by rank: the most nodes that a group has, for it is the slowest, and the most groups that a node has.
GroupPlacement irregular_placement(const Mesh& mesh, MeshAxis axis, int devices_per_node) {
  const int members = mesh.size(axis), stride = mesh.stride(axis);
  const std::int64_t period = std::lcm<std::int64_t>(std::int64_t{stride} * members, devices_per_node);  // then as before
  const int ranks = static_cast<int>(std::min<std::int64_t>(mesh.size(), period));
  std::vector<int> groups_of(static_cast<std::size_t>(ranks / devices_per_node) + 1), nodes_of(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = rank / devices_per_node, coordinate = rank / stride % members;
    if (coordinate > 0 && (rank - stride) / devices_per_node == node) continue;  // with the member before
    ++groups_of[static_cast<std::size_t>(node)];
    ++nodes_of[static_cast<std::size_t>(rank - coordinate * stride)];
  }
  GroupPlacement result;
  result.nodes = *std::max_element(nodes_of.begin(), nodes_of.end());
  result.ranks_per_node = (members + result.nodes - 1) / result.nodes;
  result.groups_per_node = *std::max_element(groups_of.begin(), groups_of.end());
  return result;
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
  const auto members = static_cast<int>(group.size());
  GroupPlacement result;
  // Those that share a node with the first.
  result.ranks_per_node = static_cast<int>(std::count_if(
      group.begin(), group.end(), [&](int rank) { return rank / devices_per_node == group.front() / devices_per_node; }));
  result.nodes = (members + result.ranks_per_node - 1) / result.ranks_per_node;
  result.groups_per_node = std::max(1, std::min(devices_per_node, mesh.size()) / result.ranks_per_node);
  return result;
}

}  // namespace sibyl

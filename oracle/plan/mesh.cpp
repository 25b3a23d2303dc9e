#include <algorithm>

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

// Ranks fill nodes in order. Of a group with stride s and n members, a node of g devices holds ceil(g/s) members
// (all n if they fit); the other g - that many devices belong to as many more groups.
GroupPlacement placement(const Mesh& mesh, MeshAxis axis, int devices_per_node) {
  const int members = mesh.size(axis), stride = mesh.stride(axis);
  GroupPlacement result;
  result.ranks_per_node = std::clamp(devices_per_node / stride, 1, members);
  result.nodes = (members + result.ranks_per_node - 1) / result.ranks_per_node;
  const int used = std::min(devices_per_node, mesh.size());
  result.groups_per_node = std::max(1, used / result.ranks_per_node);
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

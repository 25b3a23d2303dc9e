#include "trainer/mesh_groups.h"

#include <fmt/format.h>

#include <ranges>

#include "trainer/exchange.h"
#include "trainer/parts.h"

namespace sibyl::trainer {

Result<MeshGroups> MeshGroups::create(const Plan& plan, const Communicator& world) {
  if (plan.mesh.size() != world.size())
    return fail(ErrorCode::usage,
                fmt::format("the plan is for {} devices, but {} processes run", plan.mesh.size(), world.size()),
                "--devices", fmt::format("run it as mpirun -np {} sibyl-train …", plan.mesh.size()));
  MeshGroups groups;
  groups.mesh_ = plan.mesh;
  groups.rank_ = world.rank();
  const auto group_of = [&](auto axes) {
    return std::make_unique<Communicator>(world.subgroup(plan.mesh.group(world.rank(), axes)));
  };
  for (const Mesh::Extent& extent : plan.mesh.extents)
    if (extent.axis != MeshAxis::data && extent.size > 1) groups.axes_[extent.axis] = group_of(extent.axis);
  for (const GradientSync& sync : plan.stages.front().gradients) groups.syncs_.push_back(group_of(sync.axes));
  const Stage& stage = plan.stages.front();
  const std::vector<MeshAxis>& parted = stage.clip ? stage.clip->axes : stage.norm_axes;
  if (!parted.empty()) groups.parts_ = group_of(parted);
  return groups;
}

std::int64_t MeshGroups::bytes_sent() const {
  std::int64_t bytes = 0;
  for (const auto& [axis, communicator] : axes_) bytes += communicator->bytes_sent();
  for (const auto& communicator : syncs_) bytes += communicator->bytes_sent();
  if (parts_) bytes += parts_->bytes_sent();
  return bytes;
}

Shape MeshGroups::whole_shape(const LocalTensor& local) const {
  Shape shape = local.shape;
  for (const PartOf& cut : local.cuts) shape[cut.layout.dim] *= size(cut.axis);
  return shape;
}

at::Tensor MeshGroups::own_part(at::Tensor whole, const LocalTensor& local) const {
  for (const auto& [axis, layout] : local.cuts)
    whole = part_of(whole, {layout.dim, layout.pieces, size(axis)}, coordinate(axis));
  return whole;
}

at::Tensor MeshGroups::whole(at::Tensor part, const LocalTensor& local) const {
  for (const auto& [axis, layout] : local.cuts | std::views::reverse) {
    const Transfer gather{Motion::all_gather, layout.dim, 0, layout.pieces, {}, {}};
    part = perform(gather, part, this->axis(axis), false);
  }
  return part;
}

}  // namespace sibyl::trainer

#include "trainer/mesh_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "trainer/exchange.h"
#include "trainer/parts.h"

namespace sibyl::trainer {
namespace {

// Of one replica's axes there is always something to put together, be it weights that are saved.
bool exchanges_over(const std::vector<Stage>& stages, MeshAxis axis) {
  if (axis != MeshAxis::data) return true;
  return std::ranges::any_of(stages, [&](const Stage& stage) {
    return std::ranges::any_of(stage.steps, [&](const Step& step) {
      const auto* exchange = std::get_if<Exchange>(&step);
      return exchange && exchange->axis == axis;
    });
  });
}

}  // namespace

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
    if (extent.size > 1 && exchanges_over(plan.stages, extent.axis)) groups.axes_[extent.axis] = group_of(extent.axis);
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
  for (const PartOf& cut : local.cuts | std::views::reverse) {
    std::int64_t& extent = shape[cut.layout.dim];
    extent = extent * size(cut.axis) - cut.layout.surplus;
  }
  return shape;
}

at::Tensor MeshGroups::own_part(at::Tensor whole, const LocalTensor& local) const {
  for (const auto& [axis, layout] : local.cuts)
    whole = part_of(whole, {layout.dim, layout.pieces, size(axis), layout.surplus}, coordinate(axis));
  return whole;
}

at::Tensor MeshGroups::whole(at::Tensor part, const LocalTensor& local) const {
  for (const auto& [axis, layout] : local.cuts | std::views::reverse) {
    const Transfer gather{Motion::all_gather, layout.dim, 0, layout.pieces, {}, {}, layout.surplus};
    part = perform(gather, part, this->axis(axis), false);
  }
  return part;
}

}  // namespace sibyl::trainer

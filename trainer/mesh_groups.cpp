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
  groups.stages_.clear();
  for (int s = groups.coordinate(MeshAxis::pipeline); s < static_cast<int>(plan.stages.size());
       s += plan.mesh.size(MeshAxis::pipeline))
    groups.stages_.push_back(s);
  groups.join_syncs(plan, world);
  for (const int s : groups.stages_) {
    const std::vector<MeshAxis>& parted = plan.stages[static_cast<std::size_t>(s)].norm_axes;
    if (!parted.empty()) groups.parts_[s] = group_of(parted);
  }
  if (const auto& clip = plan.stages.front().clip; clip && !clip->axes.empty()) groups.clip_ = group_of(clip->axes);
  if (plan.mesh.size(MeshAxis::pipeline) > 1)
    groups.courier_ = std::make_unique<Courier>(world.subgroup(plan.mesh.group(world.rank(), MeshAxis::pipeline)));
  return groups;
}

namespace {

// Which of a stage's syncs is the one that another of its stages lists as this.
std::size_t index_of(const Stage& stage, const GradientSync& tied) {
  std::size_t index = 0;
  while (stage.gradients[index].stages != tied.stages || stage.gradients[index].axes != tied.axes) ++index;
  return index;
}

}  // namespace

// All ranks go through the syncs of all stages in one order, so that nobody waits for a group that others make later. A
// sync that several stages list is one group: it is made where the first of them lists it.
void MeshGroups::join_syncs(const Plan& plan, const Communicator& world) {
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s)
    for (std::size_t i = 0; i < plan.stages[static_cast<std::size_t>(s)].gradients.size(); ++i) {
      const GradientSync& sync = plan.stages[static_cast<std::size_t>(s)].gradients[i];
      if (!sync.stages.empty() && sync.stages.front() != s) continue;
      const std::vector<int> holders = sync.stages.empty() ? std::vector<int>{s} : sync.stages;
      const auto own = std::ranges::find_first_of(holders, stages_);
      if (own == holders.end()) continue;
      const std::size_t index = *own == s ? i : index_of(plan.stages[static_cast<std::size_t>(*own)], sync);
      syncs_[{*own, index}] = std::make_unique<Communicator>(world.subgroup(shard_group(plan.mesh, sync, rank_)));
      if (sync.copies > 1)
        copies_[{*own, index}] = std::make_unique<Communicator>(world.subgroup(copies_group(plan.mesh, sync, rank_)));
    }
}

// Of what is exchanged for gradients' sake only parameters that ranks hold by parts are gathered (trainer/zero.h).
BytesSent MeshGroups::bytes_sent() const {
  BytesSent sent;
  for (const auto& [axis, communicator] : axes_) sent.exchanges += communicator->bytes_sent();
  for (const auto& [sync, communicator] : syncs_) {
    sent.parameters += communicator->bytes_gathered();
    sent.gradients += communicator->bytes_sent() - communicator->bytes_gathered();
  }
  for (const auto& [sync, communicator] : copies_) sent.gradients += communicator->bytes_sent();
  for (const auto& [stage, communicator] : parts_) sent.norms += communicator->bytes_sent();
  if (clip_) sent.norms += clip_->bytes_sent();
  if (courier_) sent.links += courier_->bytes_sent();
  return sent;
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

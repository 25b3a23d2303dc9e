#include "oracle/plan/norms.h"

#include <set>

namespace sibyl {
namespace {

// The axes whose ranks hold different parts of some parameter's gradient.
std::vector<MeshAxis> parting_axes(const Stage& stage) {
  std::set<MeshAxis> axes;
  for (const Update& update : stage.updates)
    for (const PartOf& cut : stage[update.parameter].cuts) axes.insert(cut.axis);
  for (const GradientSync& sync : stage.gradients)
    if (sync.sharded()) axes.insert(sync.axes.begin(), sync.axes.end());
  return {axes.begin(), axes.end()};
}

}  // namespace

bool takes_norms(OptimizerKind kind) { return kind == OptimizerKind::lamb || kind == OptimizerKind::lars; }

void add_norms(Stage& stage, const Strategy& strategy) {
  if (strategy.clip > 0) stage.clip = ClipNorm{strategy.clip, parting_axes(stage)};
  if (takes_norms(strategy.optimizer)) stage.norm_axes = parting_axes(stage);
}

void join_clips(Plan& plan) {
  if (!plan.stages.front().clip) return;
  std::set<MeshAxis> axes = {MeshAxis::pipeline};
  for (const Stage& stage : plan.stages) axes.insert(stage.clip->axes.begin(), stage.clip->axes.end());
  const auto coordinates = static_cast<std::size_t>(plan.mesh.size(MeshAxis::pipeline));
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    plan.stages[s].clip->axes.assign(axes.begin(), axes.end());
    plan.stages[s].clip->sends = s < coordinates;
  }
}

std::int64_t norm_elements(const Stage& stage) {
  return stage.norm_axes.empty() ? 0 : 2 * static_cast<std::int64_t>(stage.updates.size());
}

}  // namespace sibyl

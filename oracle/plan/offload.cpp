#include "oracle/plan/offload.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/plan/norms.h"
#include "oracle/plan/offload_activations.h"
#include "oracle/plan/offload_parameters.h"
#include "oracle/plan/precision.h"
#include "oracle/plan/zero.h"

namespace sibyl {

int optimizer_states(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd: return 0;
    case OptimizerKind::momentum:
    case OptimizerKind::lars: return 1;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::lamb: return 2;
  }
  return 0;
}

int state_tensors(const Stage& stage) {
  if (stage.updates.empty()) return 0;
  return optimizer_states(stage.updates.front().optimizer.kind) + (stage.masters ? 1 : 0);
}

Result<void> check_offload(const Strategy& strategy) {
  if (strategy.optimizer_tier == Tier::device && strategy.parameter_tier == Tier::device) return {};
  const std::string where = "--offload " + offload_text(strategy);
  if (takes_norms(strategy.optimizer))
    return fail(ErrorCode::infeasible,
                fmt::format("{} takes norms of whole tensors between its passes over {}, which would come twice",
                            to_string(strategy.optimizer),
                            strategy.optimizer_tier == Tier::device ? "parameters" : "the state"),
                where, "--optimizer adamw, or leave --offload out");
  if (strategy.optimizer_tier != Tier::device && optimizer_states(strategy.optimizer) == 0 &&
      !has_half_weights(strategy))
    return fail(ErrorCode::infeasible,
                fmt::format("{} keeps no state that could lie elsewhere", to_string(strategy.optimizer)), where,
                "--optimizer momentum or adam, or leave --offload out");
  return check_parameters(strategy);
}

std::vector<std::int64_t> updated_elements(const Stage& stage, const StateBlock& block, int place) {
  std::vector<std::int64_t> elements;
  for (const LocalTensorId id : block.parameters) elements.push_back(element_count(stage[id].shape));
  for (const StateBlock::Part& part : block.parts) {
    const GradientSync& sync = stage.gradients[part.sync];
    elements.push_back(part_of(sync.buckets[part.bucket], sync.parts, place).size());
  }
  return elements;
}

BlockBytes block_bytes(const Stage& stage, const StateBlock& block, int place) {
  BlockBytes bytes;
  if (stage.state_tier != Tier::device)
    for (const std::int64_t elements : updated_elements(stage, block, place))
      bytes.state += elements * state_tensors(stage) * static_cast<std::int64_t>(size_in_bytes(DType::f32));
  if (stage.parameter_tier != Tier::device)
    for (const StateBlock::Part& part : block.parts)
      if (has_unit(stage, part.sync, part.bucket)) bytes.parameters += part_bytes(stage, part.sync, part.bucket, place);
  return bytes;
}

namespace {

// One block for each thing that is updated by itself, in the order in which they are.
std::vector<StateBlock> single_blocks(const Stage& stage) {
  const std::vector<bool> sharded = sharded_parameters(stage);
  std::vector<StateBlock> blocks;
  for (const Update& update : stage.updates)
    if (!sharded[update.parameter.index()]) blocks.push_back({{update.parameter}, {}});
  for (std::size_t s = 0; s < stage.gradients.size(); ++s)
    for (std::size_t b = 0; stage.gradients[s].sharded() && b < stage.gradients[s].buckets.size(); ++b)
      blocks.push_back({{}, {{s, b}}});
  return blocks;
}

std::vector<StateBlock> joined_blocks(const Stage& stage, Bytes least) {
  const std::vector<StateBlock> singles = single_blocks(stage);
  std::vector<std::int64_t> bytes;
  for (const StateBlock& single : singles) bytes.push_back(block_bytes(stage, single).total());
  std::vector<StateBlock> blocks;
  std::size_t next = 0;
  for (const std::size_t end : block_ends(bytes, least)) {
    StateBlock& block = blocks.emplace_back();
    for (; next < end; ++next) {
      const StateBlock& single = singles[next];
      block.parameters.insert(block.parameters.end(), single.parameters.begin(), single.parameters.end());
      block.parts.insert(block.parts.end(), single.parts.begin(), single.parts.end());
    }
  }
  return blocks;
}

}  // namespace

std::vector<std::size_t> block_ends(const std::vector<std::int64_t>& bytes, Bytes least) {
  std::vector<std::size_t> ends;
  std::int64_t open = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    open += bytes[i];
    if (i + 1 < bytes.size() && static_cast<double>(open) < least.value()) continue;
    ends.push_back(i + 1);
    open = 0;
  }
  return ends;
}

std::vector<OffloadCopy> copies_of_blocks(std::size_t count) {
  using Way = OffloadCopy::Way;
  std::vector<OffloadCopy> copies;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, count); ++i) copies.push_back({Way::in, i, 0});
  for (std::size_t i = 0; i < count; ++i) {
    copies.push_back({Way::out, i, i + 1});
    if (i + 2 < count) copies.push_back({Way::in, i + 2, i + 1});
  }
  return copies;
}

void offload_state(Stage& stage, const Strategy& strategy) {
  if (stage.updates.empty()) return;
  stage.state_tier = strategy.optimizer_tier;
  stage.parameter_tier = strategy.parameter_tier;
  if (stage.state_tier == Tier::device && stage.parameter_tier == Tier::device) return;
  stage.blocks = joined_blocks(stage, strategy.bucket);
  stage.copies = copies_of_blocks(stage.blocks.size());
}

OffloadedBytes bytes_offloaded(const Plan& plan, int rank) {
  OffloadedBytes moved;
  const auto coordinates = static_cast<std::size_t>(plan.mesh.size(MeshAxis::pipeline));
  for (auto s = static_cast<std::size_t>(plan.mesh.coordinate(rank, MeshAxis::pipeline)); s < plan.stages.size();
       s += coordinates) {
    const Stage& stage = plan.stages[s];
    const std::int64_t kept = plan.strategy.accumulation * kept_outside_bytes(stage);
    moved += {kept, kept};
    const auto place_in = [&](std::size_t sync) {  // parts of different syncs are held among different ranks
      const std::vector<int> holders = shard_group(plan.mesh, stage.gradients[sync], rank);
      return static_cast<int>(std::ranges::find(holders, rank) - holders.begin());
    };
    for (const ParameterUnit& unit : stage.units)
      if (stage.parameter_tier != Tier::device)
        moved.in += plan.strategy.accumulation * times_gathered(stage, unit) *
                    part_bytes(stage, unit.sync, unit.bucket, place_in(unit.sync));
    for (const OffloadCopy& copy : stage.copies) {
      const StateBlock& block = stage.blocks[copy.block];
      std::int64_t bytes = block_bytes(stage, {block.parameters, {}}).total();
      for (const StateBlock::Part& part : block.parts)
        bytes += block_bytes(stage, {{}, {part}}, place_in(part.sync)).total();
      (copy.way == OffloadCopy::Way::in ? moved.in : moved.out) += bytes;
    }
  }
  return moved;
}

}  // namespace sibyl

#include "oracle/memory/footprint.h"

#include "oracle/memory/step_walk.h"

namespace sibyl {
namespace {

double granularity(const Device& device) { return device.backend == Backend::cpu ? 64 : 512; }

}  // namespace

Footprint footprint(const Stage& stage, const PricedStage& priced, const Strategy& strategy, const Device& device) {
  Ledger ledger(granularity(device));
  ledger.take(MemoryKind::framework, device.framework_base.value());
  StepWalk walk(stage, priced, strategy, device, ledger);
  walk.take_static();
  for (const Turn& turn : stage.schedule) walk.take(turn);
  walk.update();
  return ledger.result();
}

Footprint footprint(const Plan& plan, const std::vector<PricedStage>& priced, int coordinate, const Device& device) {
  Ledger ledger(granularity(device));
  ledger.take(MemoryKind::framework, device.framework_base.value());
  const std::size_t coordinates = plan.schedule.size();
  std::vector<StepWalk> walks;  // of each of its stages
  for (auto s = static_cast<std::size_t>(coordinate); s < plan.stages.size(); s += coordinates)
    walks.emplace_back(plan.stages[s], priced[s], plan.strategy, device, ledger);
  for (StepWalk& walk : walks) walk.take_static();
  for (const Turn& turn : plan.schedule[static_cast<std::size_t>(coordinate)])
    walks[static_cast<std::size_t>(turn.stage) / coordinates].take(turn);
  for (StepWalk& walk : walks) walk.update();
  return ledger.result();
}

}  // namespace sibyl

#include "oracle/memory/footprint.h"

#include <algorithm>
#include <optional>

#include "oracle/memory/step_walk.h"
#include "oracle/plan/pipeline/arrivals.h"

namespace sibyl {
namespace {

// Room for what neighbours will send: from when it is asked for to the turn that takes it, whose own it then is.
class Mailbox {
 public:
  Mailbox(const Plan& plan, int coordinate, Pass pass, Ledger& ledger)
      : plan_(plan), pass_(pass), ledger_(ledger), arrivals_(plan, coordinate, pass) {
    take(arrivals_.begin());
  }

  void open(const Turn& turn) {
    const Arrivals::Message wanted{turn.stage, turn.micro_batch};
    const bool forward = turn.kind == Turn::Kind::forward;
    if (forward != (pass_ == Pass::forward) || turn.kind == Turn::Kind::backward_weight || sizes(wanted).empty())
      return;
    take(arrivals_.before(wanted));
    for (const double bytes : sizes(wanted)) ledger_.give(MemoryKind::communication, bytes);
    take(arrivals_.after(wanted));
  }

 private:
  [[nodiscard]] std::vector<double> sizes(const Arrivals::Message& message) const {
    const Stage& stage = plan_.stages[static_cast<std::size_t>(message.stage)];
    std::vector<double> result;
    for (const LocalTensorId id : arriving_tensors(stage, pass_))
      result.push_back(static_cast<double>(element_count(stage[id].shape)) * size_in_bytes(stage[id].dtype));
    return result;
  }
  void take(const std::vector<Arrivals::Message>& messages) {
    for (const Arrivals::Message& message : messages)
      for (const double bytes : sizes(message)) ledger_.take(MemoryKind::communication, bytes);
  }

  const Plan& plan_;
  Pass pass_;
  Ledger& ledger_;
  Arrivals arrivals_;
};

Ledger ledger_of(const Device& device) {
  if (device.backend == Backend::cpu) return {64, device.framework_base, std::nullopt};
  const Bytes left = device.memory - device.framework_base;
  const bool known = device.memory.value() > 0;
  // A device that its framework alone fills still has no room for more.
  const std::int64_t capacity = known ? std::max<std::int64_t>(1, static_cast<std::int64_t>(left.value())) : 0;
  return {512, device.framework_base, CachingAllocator(capacity)};
}

}  // namespace

Footprint footprint(const Stage& stage, const PricedStage& priced, const Strategy& strategy, const Device& device) {
  Ledger ledger = ledger_of(device);
  StepWalk walk(stage, priced, strategy, device, ledger);
  walk.take_static();
  for (const Turn& turn : stage.schedule) walk.take(turn);
  walk.update();
  return ledger.result();
}

Footprint footprint(const Plan& plan, const std::vector<PricedStage>& priced, int coordinate, const Device& device) {
  Ledger ledger = ledger_of(device);
  const std::size_t coordinates = plan.schedule.size();
  std::vector<StepWalk> walks;  // of each of its stages
  for (auto s = static_cast<std::size_t>(coordinate); s < plan.stages.size(); s += coordinates)
    walks.emplace_back(plan.stages[s], priced[s], plan.strategy, device, ledger);
  for (StepWalk& walk : walks) walk.take_static();
  Mailbox forward(plan, coordinate, Pass::forward, ledger), backward(plan, coordinate, Pass::backward, ledger);
  for (const Turn& turn : plan.schedule[static_cast<std::size_t>(coordinate)]) {
    forward.open(turn);
    backward.open(turn);
    walks[static_cast<std::size_t>(turn.stage) / coordinates].take(turn);
  }
  for (StepWalk& walk : walks) walk.update();
  return ledger.result();
}

}  // namespace sibyl

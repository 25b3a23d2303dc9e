#include "oracle/memory/footprint.h"

#include <algorithm>
#include <optional>

#include "oracle/memory/step_walk.h"
#include "oracle/plan/pipeline/arrivals.h"
#include "oracle/plan/pipeline/schedules.h"

namespace sibyl {
namespace {

// Room for what neighbours will send: from when it is asked for to the turn that takes it, whose own it then is.
class Mailbox {
 public:
  Mailbox(const Plan& plan, const Turns& turns, int coordinate, Pass pass, Ledger& ledger)
      : plan_(plan), pass_(pass), ledger_(ledger), arrivals_(plan.stages, turns, coordinate, pass) {
    take(arrivals_.begin());
  }

  void open(const Turn& turn) {
    const Arrivals::Message wanted{turn.stage, turn.micro_batch};
    const bool forward = turn.kind == Turn::Kind::forward;
    if (forward != (pass_ == Pass::forward) || turn.kind == Turn::Kind::backward_weight || sizes(wanted).empty())
      return;
    take(arrivals_.before(wanted));
    for (const double bytes : sizes(wanted)) ledger_.give(MemoryKind::communication, bytes, owner(wanted));
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
  [[nodiscard]] MemoryOwner owner(const Arrivals::Message& message) const {
    return {MemoryOwner::What::message, &plan_.stages[static_cast<std::size_t>(message.stage)], 0};
  }
  void take(const std::vector<Arrivals::Message>& messages) {
    for (const Arrivals::Message& message : messages)
      for (const double bytes : sizes(message)) ledger_.take(MemoryKind::communication, bytes, owner(message));
  }

  const Plan& plan_;
  Pass pass_;
  Ledger& ledger_;
  Arrivals arrivals_;
};

Ledger ledger_of(const Device& device, MemoryRecorder* recorder) {
  if (device.backend == Backend::cpu) return {64, device.framework_base, std::nullopt, recorder};
  const Bytes left = device.memory - device.framework_base;
  const bool known = device.memory.value() > 0;
  // A device that its framework alone fills still has no room for more.
  const std::int64_t capacity = known ? std::max<std::int64_t>(1, static_cast<std::int64_t>(left.value())) : 0;
  return {512, device.framework_base, CachingAllocator(capacity), recorder};
}

// Once the turns of a schedule come again, so does what is live after them: more micro-batches than these show nothing
// new on the coordinate.
int enough_micro_batches(const Strategy& strategy, int coordinate) {
  constexpr int settled = 3;  // rounds, for an allocator that keeps what it is given back
  const int all = static_cast<int>(strategy.accumulation), coordinates = strategy.pipeline;
  if (strategy.stages() == 1) return std::min(all, settled);
  switch (strategy.schedule) {
    case PipelineSchedule::gpipe: return all;  // all are on their way at once
    case PipelineSchedule::one_forward_one_backward: return std::min(all, coordinates - coordinate + settled);
    case PipelineSchedule::interleaved: return std::min(all, settled * coordinates);
    case PipelineSchedule::zero_bubble: return std::min(all, 2 * coordinates + settled);
  }
  return all;
}

int backward_turns(const std::vector<Turn>& turns, int stage) {
  return static_cast<int>(std::ranges::count_if(
      turns, [&](const Turn& turn) { return turn.stage == stage && turn.kind != Turn::Kind::forward; }));
}

}  // namespace

Footprint footprint(const Stage& stage, const PricedStage& priced, const Strategy& strategy, const Device& device,
                    MicroBatches which, MemoryRecorder* recorder) {
  const int all = stage.micro_batches(), walked = which == MicroBatches::all ? all : enough_micro_batches(strategy, 0);
  // One after the other, all alike.
  const std::size_t turns = stage.schedule.size() * static_cast<std::size_t>(walked) / static_cast<std::size_t>(all);
  Ledger ledger = ledger_of(device, recorder);
  StepWalk walk(stage, priced, strategy, device, ledger, static_cast<int>(turns) - walked);
  walk.take_static();
  for (std::size_t t = 0; t < turns; ++t) walk.take(stage.schedule[t]);
  walk.update();
  return ledger.result();
}

namespace {

// A coordinate's part of a step.
void walk(const Plan& plan, const std::vector<PricedStage>& priced, const Turns& turns, int coordinate,
          const Device& device, Ledger& ledger, Reuse* reuse = nullptr) {
  const std::vector<Turn>& own = turns[static_cast<std::size_t>(coordinate)];
  const std::size_t coordinates = turns.size();
  std::vector<StepWalk> walks;  // of each of its stages
  for (auto s = static_cast<std::size_t>(coordinate); s < plan.stages.size(); s += coordinates)
    walks.emplace_back(plan.stages[s], priced[s], plan.strategy, device, ledger,
                       backward_turns(own, static_cast<int>(s)), reuse);
  for (StepWalk& walk : walks) walk.take_static();
  Mailbox forward(plan, turns, coordinate, Pass::forward, ledger),
      backward(plan, turns, coordinate, Pass::backward, ledger);
  for (const Turn& turn : own) {
    const Stage& stage = plan.stages[static_cast<std::size_t>(turn.stage)];
    const std::size_t first = turn.kind == Turn::Kind::forward ? 0 : stage.steps.size() - 1;
    ledger.enter({StepPlace::What::pass, &stage, turn.kind, turn.micro_batch, first});
    forward.open(turn);
    backward.open(turn);
    walks[static_cast<std::size_t>(turn.stage) / coordinates].take(turn);
  }
  for (StepWalk& walk : walks) walk.update();
}

// The plan's schedule, of so many micro-batches.
Turns turns_of(const Plan& plan, int micro_batches) {
  const Strategy& s = plan.strategy;
  if (micro_batches >= s.accumulation) return plan.schedule;
  if (s.stages() > 1) return make_schedule(s.schedule, {s.pipeline, s.chunks, micro_batches}).value();
  Turns one_by_one = plan.schedule;
  one_by_one.front().resize(one_by_one.front().size() * static_cast<std::size_t>(micro_batches) /
                            static_cast<std::size_t>(s.accumulation));
  return one_by_one;
}

}  // namespace

Footprint footprint(const Plan& plan, const std::vector<PricedStage>& priced, int coordinate, const Device& device,
                    MicroBatches which, MemoryRecorder* recorder) {
  const auto all = static_cast<int>(plan.strategy.accumulation);
  Ledger ledger = ledger_of(device, recorder);
  const int walked = which == MicroBatches::all ? all : enough_micro_batches(plan.strategy, coordinate);
  walk(plan, priced, turns_of(plan, walked), coordinate, device, ledger);
  return ledger.result();
}

Reuse reuse_of(const Plan& plan, const std::vector<PricedStage>& priced, int coordinate, const Device& device) {
  // The first and the last micro-batch count for as much as they are of all; of very many nearly nothing.
  constexpr int many = 4;
  const auto all = static_cast<int>(plan.strategy.accumulation);
  const int enough = enough_micro_batches(plan.strategy, coordinate);
  const Turns turns = turns_of(plan, all > many * enough ? enough : all);
  Reuse reuse;
  for (int step = 0; step < 2; ++step) {
    if (step > 0) reuse.again();
    Ledger ledger = ledger_of(device, nullptr);
    walk(plan, priced, turns, coordinate, device, ledger, &reuse);
  }
  return reuse;
}

}  // namespace sibyl

#include "oracle/simulate/pipeline.h"

#include <algorithm>

#include "oracle/simulate/schedule_walk.h"

namespace sibyl {
namespace {

// Cancelled: none.
std::vector<StageTimes> all_times(const Plan& plan, const std::vector<PricedStage>& priced, Slowdown slowdown,
                                  const Relief& relief, const Cancelled& cancelled) {
  std::vector<StageTimes> times;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    if (is_true(cancelled)) return {};
    times.push_back(stage_times(plan.stages[s], priced[s], relief, [&](Turn turn, Place place) {
      return simulate_turn(plan.stages[s], priced[s], slowdown, turn, place, relief, cancelled);
    }));
  }
  return times;
}

int micro_batches(const Plan& plan) { return static_cast<int>(plan.strategy.accumulation); }

}  // namespace

Span in_step(const TimedTurn& timed, const NamedSpan& span) {
  if (span.kind == NamedSpan::Kind::message) {
    const auto at = [&](Seconds of_turn) {
      const Seconds alone = timed.span.start + timed.behind + timed.delay + of_turn;
      return alone + std::max(Seconds{}, alone - timed.span.end) * (timed.stretch - 1);
    };
    return {at(span.span.start), at(span.span.end)};
  }
  const Seconds length = timed.span.end - timed.span.start;
  const double longer = timed.delay.value() > 0 ? length / (length - timed.delay) : 1.0;
  return {timed.span.start + span.span.start * longer, timed.span.start + span.span.end * longer};
}

SimulatedPipeline simulate_pipeline(const Plan& plan, const std::vector<PricedStage>& priced, Slowdown slowdown,
                                    const Relief& relief, const Cancelled& cancelled) {
  const std::vector<StageTimes> times = all_times(plan, priced, slowdown, relief, cancelled);
  if (times.empty()) return {std::vector<CoordinateTimes>(plan.schedule.size()), 0, {}};
  return walk_schedule(plan.schedule, times, micro_batches(plan), cancelled);
}

namespace {

void add(TurnTimes& sum, const TurnTimes& one, double share) {
  sum.total += one.total * share;
  sum.exchanged += one.exchanged * share;
  sum.host += one.host * share;
  sum.messages += one.messages * share;
  sum.exchanges += one.exchanges * share;
  sum.copied += one.copied * share;
  sum.copies += one.copies * share;
  for (std::size_t wire = 0; wire < sum.wires.held_up.size(); ++wire) {
    const WireTime::OnOne& busy = one.wires.busy.on[wire];
    sum.wires.busy.on[wire].add(busy.seconds * share, busy.flows);
    sum.wires.held_up[wire] += one.wires.held_up[wire] * share;
  }
}

// The step if every stage took what they take on average. Cancelled: nothing that means anything.
Seconds evened(const Plan& plan, const std::vector<PricedStage>& priced, Slowdown slowdown,
               const Cancelled& cancelled) {
  std::vector<StageTimes> times = all_times(plan, priced, slowdown, {}, cancelled);
  if (times.empty()) return {};
  const double share = 1.0 / static_cast<double>(times.size());
  StageTimes mean;
  for (const StageTimes& one : times) {
    for (std::size_t i = 0; i < mean.turns.size(); ++i) add(mean.turns[i], one.turns[i], share);
    mean.tail.total += one.tail.total * share;
    if (one.tail.norm) mean.tail.norm = mean.tail.norm.value_or(Seconds{}) + *one.tail.norm * share;
  }
  for (StageTimes& one : times) {
    mean.send_forward = one.send_forward;
    mean.send_backward = one.send_backward;
    mean.forward_wire = one.forward_wire;
    mean.backward_wire = one.backward_wire;
    mean.forward_passage = one.forward_passage;
    mean.backward_passage = one.backward_passage;
    mean.tied = one.tied;
    one = mean;
  }
  return walk_schedule(plan.schedule, times, micro_batches(plan), cancelled).step.total;
}

}  // namespace

PipelineWaits waits_of(const Plan& plan, const std::vector<PricedStage>& priced, Slowdown slowdown,
                       const SimulatedPipeline& pipeline, const Cancelled& cancelled) {
  PipelineWaits waits;
  waits.links = pipeline.coordinates[pipeline.slowest].links;
  waits.imbalance = std::max(Seconds{}, pipeline.step.total - evened(plan, priced, slowdown, cancelled));
  waits.bubble = std::max(Seconds{}, pipeline.step.breakdown.bubble - waits.imbalance);
  return waits;
}

}  // namespace sibyl

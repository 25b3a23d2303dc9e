#include "oracle/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/bottleneck_kind.h"
#include "oracle/plan/recompute.h"

namespace sibyl {
namespace {

struct BoundTime {
  Seconds total;
  std::map<std::string, Seconds> families;

  void add(const BoundTime& other) {
    total += other.total;
    for (const auto& [family, time] : other.families) families[family] += time;
  }
  [[nodiscard]] std::string largest() const {  // the operation family that takes most of it
    const auto most = std::max_element(families.begin(), families.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return most != families.end() ? most->first : "";
  }
};

BoundTime time_bound_by(Bound bound, const Stage& stage, const PricedStage& priced) {
  BoundTime result;
  auto add = [&](StageKernels::Index key) {
    if (priced.prices[key].bound != bound) return;
    result.total += priced.time(key);
    result.families[std::string(name_of(priced.kernels.keys[key].signature.attributes))] += priced.time(key);
  };
  const double micro_batches = std::max(1.0, static_cast<double>(stage.micro_batches()));
  const std::vector<bool> again = recomputed_steps(stage);
  for (std::size_t i = 0; i < priced.kernels.steps.size(); ++i) {
    const StageKernels::OfStep& step = priced.kernels.steps[i];
    for (int times = again[i] ? 2 : 1; step.forward && times > 0; --times) add(*step.forward);
    if (step.backward) add(*step.backward);
    if (step.backward_weight) add(*step.backward_weight);
  }
  for (auto& [family, time] : result.families) time *= micro_batches;
  result.total *= micro_batches;
  for (const StageKernels::OfStep& step : priced.kernels.steps) std::ranges::for_each(step.compressions, add);
  for (const auto* once : {&priced.kernels.decompressions, &priced.kernels.updates}) std::ranges::for_each(*once, add);
  return result;
}

// Where something lies outside the device. `relieved`: what a step would lose were copies twice as fast.
void add_offload(const Stage& stage, double share, const std::function<double(Relief)>& relieved,
                 std::vector<Bottleneck>& candidates) {
  if (stage.copies.empty() && stage.kept_outside.empty()) return;
  BottleneckKind kind = BottleneckKind::host_link;
  std::vector<std::string_view> outside;
  const auto lies = [&](Tier tier, std::string_view what) {
    if (tier != Tier::device) outside.push_back(what);
    if (tier == Tier::nvme) kind = BottleneckKind::storage;
  };
  lies(stage.state_tier, "optimizer state");
  lies(stage.parameter_tier, "parameters");
  lies(stage.kept_tier, "activations");
  std::string what(outside.front());
  for (std::size_t i = 1; i < outside.size(); ++i)
    what += fmt::format("{}{}", i + 1 < outside.size() ? ", " : " and ", outside[i]);
  candidates.push_back({bottleneck_name(kind, what), share, relieved({.offload = 0.5})});
}

const Bottleneck& worst(const std::vector<Bottleneck>& candidates) {
  return *std::ranges::max_element(candidates, {}, &Bottleneck::relief);
}

// Of what computation waits for between operations, over the whole step.
Seconds exchange_time(const Stage& stage, const PricedStage& priced) {
  Seconds total;
  const std::vector<bool> again = recomputed_steps(stage);
  for (std::size_t i = 0; i < priced.exchanges.size(); ++i) {
    const PricedExchange& exchange = priced.exchanges[i];
    if (exchange.forward) total += exchange.forward->time.time * (again[i] ? 2.0 : 1.0);
    if (exchange.backward) total += exchange.backward->time.time;
  }
  return total * static_cast<double>(stage.micro_batches());
}

// How its gradients are exchanged. A reduce-scatter is the better half of an all-reduce, and called one.
std::string gradient_exchange(const PricedStage& priced) {
  const bool scattered = priced.messages.empty() || priced.messages.front().exchange == "reduce-scatter";
  return bottleneck_name(BottleneckKind::gradients, scattered ? "all-reduce" : priced.messages.front().exchange);
}

}  // namespace

Bottleneck find_bottleneck(const Stage& stage, const PricedStage& priced, Slowdown slowdown, const SimulatedStep& times,
                           const Cancelled& cancelled) {
  const BoundTime arithmetic = time_bound_by(Bound::compute, stage, priced);
  const BoundTime memory = time_bound_by(Bound::memory, stage, priced);
  auto relieved = [&](Relief relief) {
    return 1.0 - simulate_step(stage, priced, slowdown, relief, cancelled).total / times.total;
  };
  auto share = [&](Seconds time) { return std::min(1.0, time / times.total); };
  std::vector<Bottleneck> candidates = {
      {bottleneck_name(BottleneckKind::compute, arithmetic.largest()), share(arithmetic.total),
       relieved({.compute_bound = 0.5})},
      {bottleneck_name(BottleneckKind::memory_bandwidth, memory.largest()), share(memory.total),
       relieved({.memory_bound = 0.5})},
      {exchange_time(stage, priced) * 2.0 > times.breakdown.communication_exposed
           ? bottleneck_name(BottleneckKind::exchanges)
           : gradient_exchange(priced),
       share(times.breakdown.communication_exposed), relieved({.network = 0.5})},
      {bottleneck_name(BottleneckKind::dispatch), share(times.breakdown.host), relieved({.host = 0.5})},
  };
  add_offload(stage, share(times.breakdown.offload_exposed), relieved, candidates);
  return worst(candidates);
}

Bottleneck find_bottleneck(const Plan& plan, const std::vector<PricedStage>& priced, Slowdown slowdown,
                           const SimulatedPipeline& times, const PipelineWaits& waits, const Cancelled& cancelled) {
  BoundTime arithmetic, memory;
  Seconds exchanges, sends;
  const std::size_t coordinates = plan.schedule.size();
  for (std::size_t s = times.slowest; s < plan.stages.size(); s += coordinates) {
    const double micro_batches = plan.stages[s].micro_batches();
    arithmetic.add(time_bound_by(Bound::compute, plan.stages[s], priced[s]));
    memory.add(time_bound_by(Bound::memory, plan.stages[s], priced[s]));
    exchanges += exchange_time(plan.stages[s], priced[s]);
    for (const auto& send : {priced[s].send_forward, priced[s].send_backward})
      if (send) sends += send->time * micro_batches;
  }
  const Seconds total = times.step.total, exposed = times.step.breakdown.communication_exposed;
  const auto relieved = [&](Relief relief) {
    return 1.0 - simulate_pipeline(plan, priced, slowdown, relief, cancelled).step.total / total;
  };
  const auto share = [&](Seconds time) { return std::clamp(time / total, 0.0, 1.0); };
  const std::string network = exchanges * 2.0 > exposed ? bottleneck_name(BottleneckKind::exchanges)
                              : sends * 2.0 > exposed   ? bottleneck_name(BottleneckKind::stage_links)
                                                        : gradient_exchange(priced[times.slowest]);
  // Idling that even stages would have too shrinks with more micro-batches: by half with twice as many.
  std::vector<Bottleneck> candidates = {
      {bottleneck_name(BottleneckKind::compute, arithmetic.largest()), share(arithmetic.total),
       relieved({.compute_bound = 0.5})},
      {bottleneck_name(BottleneckKind::memory_bandwidth, memory.largest()), share(memory.total),
       relieved({.memory_bound = 0.5})},
      {network, share(exposed), relieved({.network = 0.5})},
      {bottleneck_name(BottleneckKind::dispatch), share(times.step.breakdown.host), relieved({.host = 0.5})},
      {bottleneck_name(BottleneckKind::imbalance), share(waits.imbalance), share(waits.imbalance)},
      {bottleneck_name(BottleneckKind::bubble), share(waits.bubble), share(waits.bubble / 2)},
  };
  add_offload(plan.stages[times.slowest], share(times.step.breakdown.offload_exposed), relieved, candidates);
  return worst(candidates);
}

}  // namespace sibyl

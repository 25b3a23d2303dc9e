#include "oracle/bottleneck.h"

#include <algorithm>
#include <map>
#include <string>

namespace sibyl {
namespace {

struct BoundTime {
  Seconds total;
  std::string largest;  // the operation family that takes most of it
};

BoundTime time_bound_by(Bound bound, const Stage& stage, const PricedStage& priced) {
  std::map<std::string, Seconds> families;
  BoundTime result;
  auto add = [&](StageKernels::Index key) {
    if (priced.prices[key].bound != bound) return;
    result.total += priced.time(key);
    families[std::string(name_of(priced.kernels.keys[key].signature.attributes))] += priced.time(key);
  };
  const double micro_batches = std::max(1.0, static_cast<double>(stage.micro_batches()));
  for (const StageKernels::OfStep& step : priced.kernels.steps) {
    if (step.forward) add(*step.forward);
    if (step.backward) add(*step.backward);
  }
  for (auto& [family, time] : families) time *= micro_batches;
  result.total *= micro_batches;
  for (const auto key : priced.kernels.updates) add(key);
  const auto largest = std::max_element(families.begin(), families.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest != families.end()) result.largest = largest->first;
  return result;
}

// Of what computation waits for between operations, over the whole step.
Seconds exchange_time(const Stage& stage, const PricedStage& priced) {
  Seconds total;
  for (const PricedExchange& exchange : priced.exchanges)
    for (const auto& transfer : {exchange.forward, exchange.backward})
      if (transfer) total += transfer->time.time;
  return total * static_cast<double>(stage.micro_batches());
}

}  // namespace

Bottleneck find_bottleneck(const Stage& stage, const PricedStage& priced, Slowdown slowdown,
                           const SimulatedStep& times) {
  const BoundTime arithmetic = time_bound_by(Bound::compute, stage, priced);
  const BoundTime memory = time_bound_by(Bound::memory, stage, priced);
  auto relieved = [&](Relief relief) {
    return 1.0 - simulate_step(stage, priced, slowdown, relief).total / times.total;
  };
  auto share = [&](Seconds time) { return std::min(1.0, time / times.total); };
  const Bottleneck candidates[] = {
      {"compute: " + arithmetic.largest, share(arithmetic.total), relieved({.compute_bound = 0.5})},
      {"memory bandwidth: " + memory.largest, share(memory.total), relieved({.memory_bound = 0.5})},
      {exchange_time(stage, priced) * 2.0 > times.breakdown.communication_exposed
           ? "network: exchanges between operations"
           : "network: data all-reduce",
       share(times.breakdown.communication_exposed), relieved({.network = 0.5})},
      {"host dispatch", share(times.breakdown.host), relieved({.host = 0.5})},
  };
  return *std::max_element(std::begin(candidates), std::end(candidates),
                           [](const Bottleneck& a, const Bottleneck& b) { return a.relief < b.relief; });
}

}  // namespace sibyl

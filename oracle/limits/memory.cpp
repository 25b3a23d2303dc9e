// What a device can hold, and what of it nothing fills.
#include <algorithm>
#include <vector>

#include "oracle/limits/finders.h"
#include "oracle/plan/zero.h"

namespace sibyl::limits {
namespace {

bool could_reduce_each(const Plan& plan) {
  Strategy each = plan.strategy;
  each.reduce_each = true;
  const std::vector<GradientSync>& gradients = plan.stages.front().gradients;
  return !plan.strategy.reduce_each && each.reduces_each() && check_reduce_each(each) && !gradients.empty() &&
         std::ranges::all_of(gradients, &GradientSync::sharded);
}

}  // namespace

void memory(const Found& f, Limits& limits) {
  const Prediction& p = f.prediction;
  if (p.memory_capacity.value() <= 0) return;
  const bool state = p.memory.weights + p.memory.gradients + p.memory.optimizer > p.memory.activations;
  limits.push_back(
      {"memory", "", p.memory_capacity.value(), "bytes", p.memory.needed() / p.memory_capacity,
       state ? those_that_suit({{"gradients of each micro-batch reduced (--reduce-each)", could_reduce_each(f.plan)},
                                {"split weights"},
                                {"a lighter optimizer", f.plan.strategy.optimizer != OptimizerKind::sgd}})
             : those_that_suit({{"smaller micro-batches", f.has_samples_to_part()}, {"replicas of more devices"}})});
}

// What a caching allocator holds of the device at most, beyond what is alive at the peak.
void fragmentation(const Found& f, Limits& limits) {
  const MemoryBreakdown& m = f.prediction.memory;
  if (m.cached().value() <= 0) return;
  limits.push_back({"memory fragmentation", "free segments of the allocator", m.cached().value(), "bytes",
                    m.cached() / m.reserved,
                    those_that_suit({{"segments that grow (PyTorch's expandable_segments)"},
                                     {"smaller micro-batches", f.has_samples_to_part()}})});
}

}  // namespace sibyl::limits

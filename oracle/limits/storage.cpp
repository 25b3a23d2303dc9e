// What a step waits for that comes from outside the devices: samples, and state that lies elsewhere.
#include "oracle/limits/finders.h"

namespace sibyl::limits {

void reading(const Found& f, Limits& limits) {
  const bool together = f.plan.strategy.devices() > 1 && f.cluster.devices_per_node > 1;
  add_cost(
      f, f.prediction.breakdown.io, limit_name::reading_samples, "storage",
      those_that_suit(
          {{"faster storage"}, {"fewer ranks a node that read", together}, {"samples in memory (--data-from memory)"}}),
      limits);
}

void offloading(const Found& f, Limits& limits) {
  add_cost(f, f.prediction.breakdown.offload_exposed, limit_name::offloading, offload_text(f.plan.strategy),
           those_that_suit({{"a nearer place (host for nvme)", f.plan.strategy.offloads_to(Tier::nvme)},
                            {"a faster link to the host"},
                            {"less that lies outside (--offload)"}}),
           limits);
}

}  // namespace sibyl::limits

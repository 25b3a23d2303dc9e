// What a step waits for that comes from outside the devices: samples, and state that lies elsewhere.
#include "oracle/limits/finders.h"

namespace sibyl::limits {

void reading(const Found& f, Limits& limits) {
  add_cost(f, f.prediction.breakdown.io, "reading samples", "storage",
           "faster storage; fewer ranks a node that read; samples in memory (--data-from memory)", limits);
}

void offloading(const Found& f, Limits& limits) {
  add_cost(f, f.prediction.breakdown.offload_exposed, "offloading", offload_text(f.plan.strategy),
           "a nearer place (host for nvme); a faster link to the host; less that lies outside (--offload)", limits);
}

}  // namespace sibyl::limits

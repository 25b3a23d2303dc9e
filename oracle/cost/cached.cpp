#include "oracle/cost/cached.h"

#include <algorithm>
#include <cmath>

#include "oracle/memory/footprint.h"
#include "profiler/kernel_key.h"

namespace sibyl {
namespace {

// Of the runs of one kernel in a step.
struct Found {
  double shares = 0;
  int runs = 0;
};

class Caches {
 public:
  Caches(const Cluster& cluster, const Reuse& reuse)
      : curve_(cluster.reuse),
        step_(reuse.step()),
        a_step_{step_, reuse.time()},
        backend_(cluster.kernels.device().backend) {}

  // All that it touches where it is timed out of the cache lies so near.
  [[nodiscard]] Bytes near(const KernelKey& key) const {
    const Work work = work_of(key, backend_);
    return work.read + work.written;
  }
  [[nodiscard]] double found(const Reuse::Run& run, Bytes near) const {
    double bytes = 0, found = 0;  // beyond what was there when it was timed
    for (const Reuse::Touch& touch : run.touches) {
      // However often it comes: what was touched long ago has gone as in a step of so much.
      const double share = curve_.found(touch.last, near, std::min(step_, std::max(touch.apart, touch.last.distance)));
      if (!touch.warm_when_timed) bytes += touch.bytes.value();
      found += touch.bytes.value() * (touch.warm_when_timed ? share - 1 : share);
    }
    if (run.touches.empty()) return curve_.found({}, near, step_);
    return bytes > 0 ? std::max(-1.0, found / bytes) : 0.0;  // what is colder costs as much again at most
  }
  // What runs once a step comes back to what it touches after all of it.
  [[nodiscard]] double found_after_a_step(Bytes near) const { return curve_.found(a_step_, near, step_); }

 private:
  const ReuseCurve& curve_;
  Bytes step_;
  ReuseCurve::Since a_step_;  // from one step to the next
  Backend backend_;
};

// What is found also lets it wait less for others that use the memory. How much of what all would save depends on which
// bytes those are: anything between, evenly, as far as both nothing and all allow.
void quicken(PricedKernel& kernel, double found) {
  KernelEstimate& of = kernel.estimate;
  const double most = 1 - of.cached, left = 1 - found * most;
  const double deviation = 2 * std::min(std::abs(found), 1 - found) / std::sqrt(12.0);
  of.time.time *= left;
  of.time.relative_error = std::hypot(of.time.relative_error, most * deviation / left);
  of.alone = 1 - (1 - of.alone) * std::min(1.0, 1 - found);
}

}  // namespace

bool knows_caches(const Cluster& cluster) { return cluster.kernels.knows_cached() && cluster.reuse.known(); }

void find_cached(const Plan& plan, const Cluster& cluster, std::vector<PricedStage>& priced) {
  if (!knows_caches(cluster)) return;
  const std::size_t coordinates = plan.schedule.size();
  for (std::size_t c = 0; c < coordinates; ++c) {
    const Reuse reuse = reuse_of(plan, priced, static_cast<int>(c), cluster.kernels.device());
    const std::vector<Reuse::Run> runs = reuse.runs();
    const Caches caches(cluster, reuse);
    for (std::size_t s = c; s < plan.stages.size(); s += coordinates) {
      const std::vector<KernelKey>& keys = priced[s].kernels.keys;
      std::vector<Found> found(keys.size());
      for (const Reuse::Run& run : runs) {
        if (run.stage != &plan.stages[s]) continue;
        found[run.key].shares += caches.found(run, caches.near(keys[run.key]));
        ++found[run.key].runs;
      }
      for (std::size_t k = 0; k < keys.size(); ++k)
        quicken(priced[s].prices[k],
                found[k].runs > 0 ? found[k].shares / found[k].runs : caches.found_after_a_step(caches.near(keys[k])));
    }
  }
}

}  // namespace sibyl

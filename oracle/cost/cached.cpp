#include "oracle/cost/cached.h"

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
  explicit Caches(const Cluster& cluster) : curve_(cluster.reuse), backend_(cluster.kernels.device().backend) {}

  // All that it touches where it is timed out of the cache lies so near.
  [[nodiscard]] Bytes near(const KernelKey& key) const {
    const Work work = work_of(key, backend_);
    return work.read + work.written;
  }
  [[nodiscard]] double found(const Reuse::Run& run, Bytes near) const {
    double bytes = 0, found = 0;
    for (const Reuse::Touch& touch : run.touches) {
      bytes += touch.bytes.value();
      found += touch.bytes.value() * curve_.found(touch.distance, near);
    }
    return bytes > 0 ? found / bytes : curve_.found({}, near);
  }
  [[nodiscard]] double found(Bytes distance, Bytes near) const { return curve_.found(distance, near); }

 private:
  const ReuseCurve& curve_;
  Backend backend_;
};

// What is found also lets it wait less for others that use the memory.
void quicken(PricedKernel& kernel, double found) {
  KernelEstimate& of = kernel.estimate;
  of.time.time *= 1 - found * (1 - of.cached);
  of.alone = 1 - (1 - of.alone) * (1 - found);
}

}  // namespace

bool knows_caches(const Cluster& cluster) { return cluster.kernels.knows_cached() && cluster.reuse.known(); }

void find_cached(const Plan& plan, const Cluster& cluster, std::vector<PricedStage>& priced) {
  if (!knows_caches(cluster)) return;
  const Caches caches(cluster);
  const std::size_t coordinates = plan.schedule.size();
  for (std::size_t c = 0; c < coordinates; ++c) {
    const Reuse reuse = reuse_of(plan, priced, static_cast<int>(c), cluster.kernels.device());
    const std::vector<Reuse::Run> runs = reuse.runs();
    const Bytes step = reuse.step();
    for (std::size_t s = c; s < plan.stages.size(); s += coordinates) {
      const std::vector<KernelKey>& keys = priced[s].kernels.keys;
      std::vector<Found> found(keys.size());
      for (const Reuse::Run& run : runs) {
        if (run.stage != &plan.stages[s]) continue;
        found[run.key].shares += caches.found(run, caches.near(keys[run.key]));
        ++found[run.key].runs;
      }
      // What runs once a step comes back to what it touches after all of it.
      for (std::size_t k = 0; k < keys.size(); ++k)
        quicken(priced[s].prices[k],
                found[k].runs > 0 ? found[k].shares / found[k].runs : caches.found(step, caches.near(keys[k])));
    }
  }
}

}  // namespace sibyl

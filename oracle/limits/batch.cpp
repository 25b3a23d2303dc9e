// What there is of samples, and of operations, to be dealt out.
#include <set>

#include "oracle/limits/finders.h"

namespace sibyl::limits {

void batch(const Found& f, Limits& limits) {
  const Strategy& s = f.plan.strategy;
  const int ranks = s.data * s.samplers();
  if (ranks == 1) return;
  const auto samples = static_cast<double>(s.global_batch);
  limits.push_back({"batch", axes_text(f, {MeshAxis::data, MeshAxis::expert, MeshAxis::table}), samples, "samples",
                    static_cast<double>(ranks) * s.accumulation / samples, "a larger batch; replicas of more devices"});
}

// No stage without something to train.
void layers(const Found& f, Limits& limits) {
  if (f.degree(MeshAxis::pipeline) == 1) return;
  std::set<OperationId> trained;
  for (const Stage& stage : f.plan.stages)
    for (const Step& step : stage.steps)
      if (const auto* compute = std::get_if<Compute>(&step); compute && compute->gradients != 0)
        trained.insert(compute->operation);
  const auto count = static_cast<double>(trained.size());
  limits.push_back({"number of layers", "pipeline", count, "operations", f.plan.strategy.stages() / count,
                    "a deeper model; another axis beside it"});
}

// Each has a sample at least.
void micro_batches(const Found& f, Limits& limits) {
  const Strategy& s = f.plan.strategy;
  if (s.pipeline == 1) return;
  const auto samples = static_cast<double>(s.global_batch) / s.data / s.samplers();
  limits.push_back({"number of micro-batches", "pipeline", samples, "samples", f.micro_batches() / samples,
                    those_that_suit({{"a larger batch"}, {"fewer replicas", s.data > 1}})});
}

}  // namespace sibyl::limits

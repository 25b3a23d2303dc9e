#include "calibration/program/wanted.h"

#include <unordered_set>

#include "oracle/cli/options.h"
#include "oracle/cost/kernels.h"
#include "oracle/plan/plan.h"

namespace sibyl {

Result<std::vector<KernelKey>> kernels_of_models(const Wanted& wanted) {
  std::vector<KernelKey> keys;
  std::unordered_set<KernelKey> known;
  for (const std::string& model : wanted.models)
    for (const std::int64_t batch : wanted.batches) {
      ImportOptions import = wanted.import;
      import.batch = batch;
      SIBYL_TRY(const Graph graph, cli::load_graph(model, import));
      for (const OptimizerKind optimizer : wanted.optimizers) {
        Strategy strategy = wanted.strategy;
        strategy.optimizer = optimizer;
        strategy.global_batch = batch * strategy.data * strategy.accumulation;
        SIBYL_TRY(const Plan plan, make_plan(graph, strategy));
        for (KernelKey& key : kernels_of(plan, wanted.backend))
          if (known.insert(key).second) keys.push_back(std::move(key));
      }
    }
  return keys;
}

}  // namespace sibyl

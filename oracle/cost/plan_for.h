// A plan whose stages, if it has several, are cut by what their operations cost on this cluster, and by its memory.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "oracle/cost/kernel_prices.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// What stages of this strategy are cut by. Good while strategy and prices are.
CutCosts cut_costs(const Strategy& strategy, KernelPrices& kernels);
Bytes memory_for_stages(const Device& device);                              // of these, the limit
bool stages_share_nodes(const Strategy& strategy, const Cluster& cluster);  // neighbours in the pipeline, all of them

Result<Plan> plan_for(const Graph& graph, const Strategy& strategy, const Cluster& cluster);

// The same for many strategies of one model: the programs that some of them have in common are made once, and the last
// ones kept. Not for several threads at once.
class Planner {
 public:
  // All must outlive it.
  Planner(const Graph& graph, KernelPrices& kernels) : graph_(&graph), kernels_(&kernels) {}

  Result<Plan> plan(const Strategy& strategy);

 private:
  // A program, and where it was cut into stages.
  struct Known {
    Strategy strategy;  // the first that had it
    Result<Stage> program;
    std::vector<std::pair<Strategy, std::vector<std::size_t>>> cuts = {};
  };
  Known& program_of(const Strategy& strategy);  // good until the next call
  std::optional<std::vector<std::size_t>> cut(Known& known, const Strategy& strategy, const CutCosts& costs) const;

  const Graph* graph_;
  KernelPrices* kernels_;
  std::list<Known> programs_;  // the last used first
};

}  // namespace sibyl

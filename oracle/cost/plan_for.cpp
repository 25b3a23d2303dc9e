#include "oracle/cost/plan_for.h"

#include <algorithm>
#include <tuple>

#include "oracle/cost/kernels.h"
#include "oracle/cost/price.h"
#include "oracle/plan/pipeline/balance.h"
#include "oracle/plan/pipeline/schedules.h"
#include "oracle/plan/pipeline/stage_memory.h"

namespace sibyl {
namespace {

// Seconds of a step's two passes: of each kernel and exchange what it takes, or what the host takes to issue it, if
// that is longer. No less than the stage takes, whose host runs ahead of long kernels.
class StepTime {
 public:
  StepTime(const Strategy& strategy, KernelPrices& kernels)
      : exchanges_(mesh_of(strategy), kernels.cluster()),
        strategy_(strategy),
        kernels_(kernels),
        cluster_(kernels.cluster()) {}

  double operator()(const Stage& stage, const Step& step) {
    if (const auto* exchange = std::get_if<Exchange>(&step)) {
      const PricedExchange& priced = exchanges_.of(stage, *exchange);
      double time = 0;
      for (const auto& transfer : {priced.forward, priced.backward})
        if (transfer) time += issued(transfer->time.time.value());
      return time;
    }
    const auto& compute = std::get<Compute>(step);
    double time = 0;
    if (const auto forward = kernel_of(stage, compute, backend(), Pass::forward, 0))
      time += issued(of(*forward) + cluster_.step_overhead_per_operation.value());
    if (const auto backward = kernel_of(stage, compute, backend(), Pass::backward, compute.gradients))
      time += issued(of(*backward));
    return time;
  }

 private:
  [[nodiscard]] Backend backend() const { return cluster_.kernels.device().backend; }
  [[nodiscard]] double of(const KernelKey& key) const {
    return kernels_.of(key, strategy_).estimate.time.time.value() * cluster_.composition.factor;
  }

  [[nodiscard]] double issued(double seconds) const {
    return std::max(seconds, cluster_.kernels.device().dispatch.value());
  }

  ExchangePrices exchanges_;
  const Strategy& strategy_;
  KernelPrices& kernels_;
  const Cluster& cluster_;
};

}  // namespace

bool stages_share_nodes(const Strategy& strategy, const Cluster& cluster) {
  return placement(mesh_of(strategy), MeshAxis::pipeline, cluster.devices_per_node).nodes == 1;
}

Bytes memory_for_stages(const Device& device) {
  return device.memory.value() > 0 ? std::max(Bytes{1}, device.memory - device.framework_base) : Bytes{};
}

CutCosts cut_costs(const Strategy& strategy, KernelPrices& kernels) {
  const Cluster& cluster = kernels.cluster();
  CutCosts costs;
  costs.time = StepTime(strategy, kernels);
  costs.link = [&cluster, same_node = stages_share_nodes(strategy, cluster)](Bytes both_ways) {
    return 2 * cluster.network.point_to_point(both_ways / 2, same_node).time.value();
  };
  const Device& device = cluster.kernels.device();
  costs.backend = device.backend;
  costs.workspace = [&strategy, &kernels](const Signature& s, std::uint32_t gradients) {
    return kernels.of({s, Pass::backward, gradients}, strategy).estimate.workspace;
  };
  costs.memory = memory_for_stages(device);
  return costs;
}

Planner::Known& Planner::program_of(const Strategy& strategy) {
  constexpr std::size_t most = 32;  // a large model's program is some MB
  const auto found = std::find_if(programs_.begin(), programs_.end(), [&](const Known& known) {
    return program_key(known.strategy) == program_key(strategy);
  });
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
  } else {
    programs_.push_front({strategy, make_program(*graph_, strategy)});
    if (programs_.size() > most) programs_.pop_back();
  }
  return programs_.front();
}

namespace {

// What cutting a program by costs looks at: how many stages of how much memory, and where their ranks lie.
bool same_cut(const Strategy& a, const Strategy& b) {
  const auto core = [](const Strategy& s) {
    return std::tuple(s.pipeline, s.chunks, s.schedule, s.accumulation, s.data, s.converted_images, s.converted_norms,
                      s.attention, memory_key(s));
  };
  return core(a) == core(b) && a.order == b.order;
}

}  // namespace

std::optional<std::vector<std::size_t>> Planner::cut(Known& known, const Strategy& strategy,
                                                     const CutCosts& costs) const {
  if (!strategy.stage_starts.empty()) return std::nullopt;
  for (const auto& [other, begins] : known.cuts)
    if (same_cut(other, strategy)) return begins;
  if (!check_stages(*known.program, strategy)) return std::nullopt;
  const auto turns =
      make_schedule(strategy.schedule, {strategy.pipeline, strategy.chunks, static_cast<int>(strategy.accumulation)});
  if (!turns) return std::nullopt;
  const auto begins = balanced(*known.program, strategy, *turns, costs);
  if (!begins) return std::nullopt;
  known.cuts.emplace_back(strategy, *begins);
  return *begins;
}

Result<Plan> Planner::plan(const Strategy& strategy) {
  SIBYL_CHECK(check_strategy(*graph_, strategy));
  Known& known = program_of(strategy);
  if (!known.program) return tl::unexpected(known.program.error());
  if (strategy.stages() == 1) return make_plan(*graph_, strategy, *known.program);
  CutCosts costs = cut_costs(strategy, *kernels_);
  costs.begins = cut(known, strategy, costs);
  return make_plan(*graph_, strategy, *known.program, costs);
}

Result<Plan> plan_for(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  KernelPrices kernels(cluster);
  return Planner(graph, kernels).plan(strategy);
}

}  // namespace sibyl

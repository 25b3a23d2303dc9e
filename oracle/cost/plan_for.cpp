#include "oracle/cost/plan_for.h"

#include <memory>
#include <unordered_map>

#include "oracle/cost/price.h"

namespace sibyl {
namespace {

// Seconds of a step's two passes, each distinct kernel looked up once.
class StepTime {
 public:
  StepTime(const Strategy& strategy, const Cluster& cluster)
      : mesh_(mesh_of(strategy)), cluster_(cluster), known_(std::make_shared<Known>()) {}

  double operator()(const Stage& stage, const Step& step) const {
    if (const auto* exchange = std::get_if<Exchange>(&step)) {
      const PricedExchange priced = price_exchange(mesh_, stage, *exchange, cluster_);
      double time = 0;
      for (const auto& transfer : {priced.forward, priced.backward})
        if (transfer) time += transfer->time.time.value();
      return time;
    }
    const auto& compute = std::get<Compute>(step);
    const Signature s = signature(stage, compute);
    double time = of({s, Pass::forward, 0}) + cluster_.step_overhead_per_operation.value();
    if (compute.gradients != 0) time += of({s, Pass::backward, compute.gradients});
    return time;
  }

 private:
  using Known = std::unordered_map<KernelKey, double>;

  [[nodiscard]] double of(const KernelKey& key) const {
    const auto [entry, added] = known_->try_emplace(key, 0.0);
    if (added) entry->second = cluster_.kernels.estimate(key).time.time.value() * cluster_.composition.factor;
    return entry->second;
  }

  Mesh mesh_;
  const Cluster& cluster_;
  std::shared_ptr<Known> known_;  // of all copies of this
};

}  // namespace

Result<Plan> plan_for(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  if (strategy.stages() == 1) return make_plan(graph, strategy);
  CutCosts costs;
  costs.time = StepTime(strategy, cluster);
  const bool same_node = placement(mesh_of(strategy), MeshAxis::pipeline, cluster.devices_per_node).nodes == 1;
  costs.link = [&cluster, same_node](Bytes both_ways) {
    return 2 * cluster.network.point_to_point(both_ways / 2, same_node).time.value();
  };
  const Device& device = cluster.kernels.device();
  if (device.memory.value() > 0) costs.memory = std::max(Bytes{1}, device.memory - device.framework_base);
  return make_plan(graph, strategy, costs);
}

}  // namespace sibyl

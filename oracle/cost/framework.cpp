#include "oracle/cost/framework.h"

#include <algorithm>

#include "netmodel/channels.h"
#include "oracle/cost/offload.h"

namespace sibyl {

Algorithm exchange_algorithm(const Strategy& strategy, const Cluster& cluster) {
  const bool gloo = strategy.framework == Framework::pytorch_ddp && cluster.kernels.device().backend == Backend::cpu;
  return gloo ? Algorithm::gloo : Algorithm::automatic;
}

double bare_launch(const Device& device) {
  constexpr Seconds least{5e-6};
  return device.dispatch > least ? least / device.dispatch : 1.0;
}

Slowdown slowdown_of(const Strategy& strategy, const Cluster& cluster) {
  const bool gloo = exchange_algorithm(strategy, cluster) == Algorithm::gloo;
  const OverlapSample& beside = gloo ? cluster.overlap_with_gloo : cluster.overlap;
  Slowdown slowdown{beside.compute_slowdown, beside.communication_slowdown,
                    copies_slowdown(strategy, cluster.kernels.device())};
  if (gloo) return slowdown;
  const Device& device = cluster.kernels.device();
  const bool said = cluster.overlap_known || beside.compute_slowdown != 1.0 || beside.communication_slowdown != 1.0;
  if (!said && device.backend == Backend::cuda) {
    const int nodes = placement(mesh_of(strategy), MeshAxis::data, cluster.devices_per_node).nodes;
    slowdown.compute = slowdown_beside(nccl_channels(cluster.network.topology().spec(), nodes), device.multiprocessors);
    return slowdown;
  }
  // Of many, some that cover all lengths.
  const std::vector<OverlapSample>& all = cluster.overlap_by_message;
  slowdown.count = std::min(all.size(), Slowdown::most_measured);
  for (std::size_t i = 0; i < slowdown.count; ++i) {
    const OverlapSample& s = all[slowdown.count == 1 ? 0 : i * (all.size() - 1) / (slowdown.count - 1)];
    slowdown.measured[i] = {s.message, s.compute_slowdown, s.communication_slowdown};
  }
  return slowdown;
}

}  // namespace sibyl

#include "oracle/cost/framework.h"

namespace sibyl {

Algorithm exchange_algorithm(const Strategy& strategy, const Cluster& cluster) {
  const bool gloo = strategy.framework == Framework::pytorch_ddp && cluster.kernels.device().backend == Backend::cpu;
  return gloo ? Algorithm::gloo : Algorithm::automatic;
}

Slowdown slowdown_of(const Strategy& strategy, const Cluster& cluster) {
  const bool gloo = exchange_algorithm(strategy, cluster) == Algorithm::gloo;
  const OverlapSample& beside = gloo ? cluster.overlap_with_gloo : cluster.overlap;
  return {beside.compute_slowdown, beside.communication_slowdown};
}

}  // namespace sibyl

#include "oracle/predict.h"

#include <fmt/format.h>

#include <algorithm>

namespace sibyl {
namespace {

Result<Prediction> predict_on(const Graph& graph, const Strategy& strategy, const Cluster& cluster, int devices,
                              const Cancelled& cancelled) {
  if (strategy.devices() == devices) return predict(graph, strategy, cluster, cancelled);
  return fail(ErrorCode::infeasible,
              fmt::format("{} device{} cannot be divided into replicas of {}", devices, devices == 1 ? "" : "s",
                          strategy.devices_per_replica()),
              "--parallel");
}

}  // namespace

Result<Cluster> sized_for(const Cluster& cluster, int devices) {
  const int per_node = std::min(devices, cluster.devices_per_node);
  return resized(cluster, (devices + per_node - 1) / per_node, per_node);
}

Strategy strategy_at(const Strategy& strategy, int devices, Scaling scaling) {
  Strategy at = strategy;
  at.data = std::max(1, devices / strategy.devices_per_replica());
  if (scaling == Scaling::weak)
    at.global_batch = std::max<std::int64_t>(1, strategy.global_batch / strategy.devices()) * devices;
  return at;
}

std::vector<ScalePoint> scale(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                              const std::vector<int>& device_counts, Scaling scaling,
                              const std::function<void(const ScalePoint&)>& each, const Cancelled& cancelled) {
  std::vector<ScalePoint> points;
  double reference = 0;  // samples per second and device of the first point
  for (const int devices : device_counts) {
    const Strategy at = strategy_at(strategy, devices, scaling);
    Result<Prediction> prediction = sized_for(cluster, devices).and_then([&](const Cluster& sized) {
      return predict_on(graph, at, sized, devices, cancelled);
    });
    double efficiency = 0;
    if (prediction) {
      const double rate = prediction->throughput / devices;
      if (reference == 0) reference = rate;
      efficiency = rate / reference;
    }
    points.push_back({devices, std::move(prediction), efficiency});
    if (each) each(points.back());
    if (is_true(cancelled)) break;
  }
  return points;
}

}  // namespace sibyl

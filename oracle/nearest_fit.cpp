#include "oracle/nearest_fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "oracle/predict.h"

namespace sibyl {
namespace {

constexpr std::int64_t most_parts = 1 << 16;  // nobody trains with more, and the search must end

bool fits(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  const auto prediction = predict(graph, strategy, cluster);
  return prediction && prediction->fits;
}

Strategy with_batch(Strategy strategy, std::int64_t micro_batch) {
  strategy.global_batch = micro_batch * strategy.accumulation * strategy.data;
  return strategy;
}

}  // namespace

NearestFit nearest_fit(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                       const std::function<bool()>& cancelled) {
  const auto stopped = [&] { return cancelled && cancelled(); };
  NearestFit result;
  const Strategy one_sample = with_batch(strategy, 1);
  if (!fits(graph, one_sample, cluster)) {
    if (const auto least = predict(graph, one_sample, cluster)) result.least = least->memory.needed();
    return result;
  }
  const std::int64_t per_replica = strategy.global_batch / strategy.data;
  const std::int64_t most = std::min(per_replica, most_parts);
  for (std::int64_t parts = strategy.accumulation + 1; parts <= most && !result.micro_batches && !stopped(); ++parts) {
    if (per_replica % parts != 0) continue;
    Strategy split = strategy;
    split.accumulation = parts;
    if (fits(graph, split, cluster)) result.micro_batches = parts;
  }
  // Memory grows with the micro-batch, so the largest that fits is found by halving.
  std::int64_t good = 1, too_large = per_replica / strategy.accumulation;
  while (too_large - good > 1) {
    if (stopped()) return result;
    const std::int64_t middle = good + (too_large - good) / 2;
    (fits(graph, with_batch(strategy, middle), cluster) ? good : too_large) = middle;
  }
  result.global_batch = with_batch(strategy, good).global_batch;
  return result;
}

std::string batch_text(const Strategy& strategy, std::int64_t global_batch) {
  if (strategy.devices_per_replica() == 1) return fmt::format("{}/device", global_batch / strategy.data);
  return fmt::format("{}", global_batch);
}

std::string to_text(const NearestFit& fit, const Strategy& strategy) {
  if (fit.least)
    return fmt::format(
        "even one sample per device needs {}: use devices with more memory, a smaller optimizer state or a lower "
        "precision",
        to_string(*fit.least));
  if (!fit.global_batch) return "no batch fits";
  std::string text;
  if (fit.micro_batches) text = fmt::format("--micro-batches {} fits with the same batch; ", *fit.micro_batches);
  return text +
         fmt::format("--batch {} is the largest that fits{}", batch_text(strategy, *fit.global_batch),
                     strategy.accumulation > 1 ? fmt::format(" in {} micro-batches", strategy.accumulation) : "");
}

}  // namespace sibyl

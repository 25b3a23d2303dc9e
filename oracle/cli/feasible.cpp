#include "oracle/cli/feasible.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "oracle/predict.h"

namespace sibyl::cli {
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

// Memory grows with the micro-batch, so the largest that fits is found by halving.
std::int64_t largest_micro_batch(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                                 std::int64_t too_large) {
  std::int64_t good = 1;
  while (too_large - good > 1) {
    const std::int64_t middle = good + (too_large - good) / 2;
    (fits(graph, with_batch(strategy, middle), cluster) ? good : too_large) = middle;
  }
  return good;
}

// As --batch takes it.
std::string batch_text(const Strategy& strategy, std::int64_t per_replica) {
  if (strategy.devices_per_replica() == 1) return fmt::format("{}/device", per_replica);
  return fmt::format("{}", per_replica * strategy.data);
}

}  // namespace

std::string nearest_fit(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  const std::int64_t per_replica = strategy.global_batch / strategy.data;
  const std::int64_t micro_batch = per_replica / strategy.accumulation;
  if (!fits(graph, with_batch(strategy, 1), cluster)) {
    const auto least = predict(graph, with_batch(strategy, 1), cluster);
    if (!least) return "no batch fits";
    return fmt::format(
        "even one sample per device needs {}: use devices with more memory, a smaller optimizer state or a lower "
        "precision",
        to_string(least->memory.needed()));
  }
  std::string text;
  const std::int64_t most = std::min(per_replica, most_parts);
  for (std::int64_t parts = strategy.accumulation + 1; parts <= most && text.empty(); ++parts) {
    if (per_replica % parts != 0) continue;
    Strategy split = strategy;
    split.accumulation = parts;
    if (fits(graph, split, cluster)) text = fmt::format("--micro-batches {} fits with the same batch; ", parts);
  }
  const std::int64_t largest = largest_micro_batch(graph, strategy, cluster, micro_batch);
  return text +
         fmt::format("--batch {} is the largest that fits{}", batch_text(strategy, largest * strategy.accumulation),
                     strategy.accumulation > 1 ? fmt::format(" in {} micro-batches", strategy.accumulation) : "");
}

}  // namespace sibyl::cli

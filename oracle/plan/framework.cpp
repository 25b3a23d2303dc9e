#include "oracle/plan/framework.h"

#include <fmt/format.h>

#include <set>

namespace sibyl {
namespace {

constexpr std::size_t first_statistic = 3;  // operands of a batch-norm: x, scale, shift, mean, variance
constexpr std::int64_t counter_bytes = 8;

Result<void> refuse(std::string_view what, std::string_view option) {
  return fail(ErrorCode::usage, fmt::format("pytorch-ddp has no {}", what), std::string(option),
              "DistributedDataParallel trains whole replicas and overlaps their exchange; leave --framework out");
}

}  // namespace

Result<void> check_framework(const Strategy& strategy) {
  if (strategy.framework != Framework::pytorch_ddp) return {};
  if (strategy.devices_per_replica() > 1 || strategy.stages() > 1) return refuse("split replicas", "--parallel");
  if (strategy.zero > 0) return refuse("sharded state", "--zero");
  if (strategy.exchange != GradientExchange::overlapped) return refuse("exchange after backward", "--no-overlap");
  if (strategy.offloads()) return refuse("state outside its device", "--offload");
  const bool hooked = strategy.compression.kind <= Compression::Kind::bf16;  // comes with such hooks
  if (!hooked) return refuse("hook for such gradients", "--compress " + compression_text(strategy.compression));
  return {};
}

std::vector<std::int64_t> buffer_broadcasts(const Stage& stage, const Strategy& strategy) {
  if (strategy.framework != Framework::pytorch_ddp || strategy.data == 1) return {};
  std::set<LocalTensorId> statistics;
  std::int64_t counters = 0, bytes = 0;
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    const auto* norm = compute ? std::get_if<Normalization>(&compute->attributes) : nullptr;
    if (!norm || norm->kind != NormalizationKind::batch) continue;
    const std::size_t before = statistics.size();
    for (std::size_t i = first_statistic; i < compute->inputs.size(); ++i)
      if (compute->inputs[i].valid()) statistics.insert(compute->inputs[i]);
    if (statistics.size() > before) ++counters;
  }
  for (const LocalTensorId id : statistics)
    bytes += element_count(stage[id].shape) * static_cast<std::int64_t>(size_in_bytes(stage[id].dtype));
  if (bytes == 0) return {};
  return {bytes, counters * counter_bytes};
}

}  // namespace sibyl

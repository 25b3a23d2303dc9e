#include "oracle/plan/pipeline/stage_memory.h"

#include <algorithm>
#include <limits>

namespace sibyl {

namespace {

std::tuple<Recompute, int, int, std::vector<std::string>> runs_again(const Strategy& s) {
  return {s.recompute, s.recompute_every, s.recompute_together, s.recompute_kinds};
}

}  // namespace

MemoryKey memory_key(const Strategy& s) {
  const bool by_replicas = s.zero > 0 || s.compression.kind != Compression::Kind::none;
  const bool overlapped = s.exchange == GradientExchange::overlapped;
  const bool in_turn = s.zero == 2 || s.compression.kind != Compression::Kind::none;  // some buffer is all buckets'
  const double bucket = in_turn && !overlapped ? std::numeric_limits<double>::infinity() : s.bucket.value();
  return {runs_again(s),
          {s.optimizer, s.optimizer_tier, s.activation_tier},
          {s.zero, by_replicas ? s.data : std::min(s.data, 2), by_replicas ? s.zero_ranks : 0,
           by_replicas && s.zero != 1 ? bucket : 0.0},
          {s.compression.kind, s.compression.share}};
}

MemoryKey memory_key_without_buckets(const Strategy& strategy) {
  MemoryKey key = memory_key(strategy);
  std::get<double>(std::get<2>(key)) = 0;
  return key;
}

StageMemories::StageMemories(const BackwardMemory& backward, const Places& places, const std::vector<std::size_t>& like)
    : backward_(backward), places_(places), like_(like) {}

std::shared_ptr<const KeptSums> StageMemories::kept(const Strategy& strategy) {
  std::shared_ptr<const KeptSums>& kept = kept_[{runs_again(strategy), strategy.activation_tier}];
  if (!kept) kept = std::make_shared<const KeptSums>(backward_, places_, strategy, like_);
  return kept;
}

ParameterSums& StageMemories::parameters() {
  if (!parameters_) parameters_.emplace(backward_.program(), places_);
  return *parameters_;
}

std::shared_ptr<const HeldState> StageMemories::held(const Strategy& strategy, MemoryKey key, bool buckets) {
  std::get<0>(key) = {};
  std::shared_ptr<const HeldState>& held = held_[{std::move(key), buckets}];
  if (!held)
    held = std::make_shared<const HeldState>(buckets ? parameters().held(strategy, like_)
                                                     : parameters().without_buckets(strategy));
  return held;
}

const StageMemory& StageMemories::of(const Strategy& strategy) {
  MemoryKey key = memory_key(strategy);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  StageMemory made{kept(strategy), held(strategy, key, true)};
  return known_.try_emplace(std::move(key), std::move(made)).first->second;
}

const StageMemory& StageMemories::without_buckets(const Strategy& strategy) {
  MemoryKey key = memory_key_without_buckets(strategy);
  const auto known = without_buckets_.find(key);
  if (known != without_buckets_.end()) return known->second;
  StageMemory made{kept(strategy), held(strategy, key, false)};
  return without_buckets_.try_emplace(std::move(key), std::move(made)).first->second;
}

}  // namespace sibyl

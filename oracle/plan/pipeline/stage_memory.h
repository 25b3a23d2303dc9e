// About how much memory the stages of a pipeline take, wherever its program is cut: what cuts are chosen by.
//
// oracle/memory walks the steps of stages that are known; here any stage is answered for out of sums over the program's
// places, and a stage of more places never takes less. How far it is from the walk is in docs/pipeline.md. Left out are
// room for messages of neighbours, what a caching allocator keeps, and the update's own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "oracle/plan/pipeline/kept_sums.h"
#include "oracle/plan/pipeline/parameter_sums.h"

namespace sibyl {

// Micro-batches on their way through a stage, at most; of these, such whose backward's second part is still to come.
struct OnTheWay {
  double all = 1, later = 0;
  bool operator==(const OnTheWay&) const = default;
};

// One strategy's.
class StageMemory {
 public:
  StageMemory(std::shared_ptr<const KeptSums> kept, std::shared_ptr<const HeldState> held)
      : kept_(std::move(kept)), held_(std::move(held)) {}

  // Bytes. `passing`: of one micro-batch's backward, beyond what lies there anyway; of the stages of one device one at
  // a time has it.
  struct Need {
    double resting = 0, passing = 0;
  };
  [[nodiscard]] Need of(std::size_t begin, std::size_t end, const OnTheWay& micro_batches) const {
    return {resting(begin, end, micro_batches), passing(begin, end)};
  }
  [[nodiscard]] double resting(std::size_t begin, std::size_t end, const OnTheWay& micro_batches) const {
    if (begin == end) return 0;
    const double kept = kept_->kept(begin, end);
    // The one whose backward runs is whole.
    const double later = std::min(micro_batches.later, micro_batches.all - 1);
    const double bytes = held_->of(begin, end) + (micro_batches.all - later) * kept;
    return later > 0 ? bytes + later * kept_->later(begin, end) : bytes;
  }
  [[nodiscard]] double passing(std::size_t begin, std::size_t end) const {
    return begin == end ? 0 : kept_->passing(begin, end) + held_->passing(begin, end);
  }

 private:
  std::shared_ptr<const KeptSums> kept_;
  std::shared_ptr<const HeldState> held_;
};

// What of a strategy decides, beside its program: those with equal ones have the same StageMemory.
using MemoryKey =
    std::tuple<std::tuple<Recompute, int, int, std::vector<std::string>>, std::tuple<OptimizerKind, Tier, Tier>,
               std::tuple<int, int, int, double>, std::tuple<Compression::Kind, double>>;
MemoryKey memory_key(const Strategy& strategy);
MemoryKey memory_key_without_buckets(const Strategy& strategy);

// Of all strategies that share a program.
class StageMemories {
 public:
  // All must outlive it. `like`: as of BackwardMemory.
  StageMemories(const BackwardMemory& backward, const Places& places, const std::vector<std::size_t>& like);

  const StageMemory& of(const Strategy& strategy);  // good as long as this
  // No more than that, whatever the size of its buckets: without any.
  const StageMemory& without_buckets(const Strategy& strategy);

 private:
  using KeptKey = std::pair<std::tuple<Recompute, int, int, std::vector<std::string>>, Tier>;
  std::shared_ptr<const KeptSums> kept(const Strategy& strategy);
  ParameterSums& parameters();
  // With buckets or without. `key`: the memory_key() that is asked for.
  std::shared_ptr<const HeldState> held(const Strategy& strategy, MemoryKey key, bool buckets);

  const BackwardMemory& backward_;
  const Places& places_;
  const std::vector<std::size_t>& like_;
  std::optional<ParameterSums> parameters_;  // once asked
  std::map<KeptKey, std::shared_ptr<const KeptSums>> kept_;
  std::map<std::pair<MemoryKey, bool>, std::shared_ptr<const HeldState>> held_;  // whatever runs again
  std::map<MemoryKey, StageMemory> known_, without_buckets_;
};

}  // namespace sibyl

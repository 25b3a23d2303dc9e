// What the optimizer does for one stage once gradients are complete: they are clipped by the norm over all parameters,
// and parameters updated; of sharded syncs the rank's parts. Norms of tensors that other ranks hold parts of are summed
// with them; the norm over all parameters, which other stages have their share of, is summed by who runs the stages.
#pragma once

#include <torch/types.h>
#include <filesystem>
#include <memory>
#include <vector>

#include "aten/optimizer.h"
#include "trainer/offload.h"
#include "trainer/replica.h"
#include "trainer/zero.h"

namespace sibyl::trainer {

class Updates {
 public:
  // The arguments must outlive it. `shards`: by Stage::gradients, null where it is not sharded. `parts`: of the ranks
  // whose norms are summed with this one's; may be null where there are none.
  Updates(Replica& replica, int stage, const std::vector<std::unique_ptr<ShardedSync>>& shards,
          const aten::OptimizerSettings& settings, Communicator* parts);

  // Where the plan says so, takes the state out of the device, and knows where parts of parameters lie that are out of
  // it; before the first run.
  Result<void> offload(const std::filesystem::path& folder);
  [[nodiscard]] OffloadedBytes offloaded() const { return offloaded_ ? offloaded_->moved() : OffloadedBytes{}; }
  void record(Recorder* recorder);

  // Of gradients of a loss that was scaled, which only an emulated device runs: the pass that divides them again.
  void unscale();
  // Of all gradients that no other rank or stage counts.
  double squares();
  // By the sum of everybody's squares.
  void clip(double squares);
  // Gradients are dropped afterwards.
  void run();

 private:
  struct Target {
    LocalTensorId parameter;      // one of them, where it is a part of several
    std::size_t tensor = 0;       // its update
    std::size_t block = 0;        // of state that lies outside
    at::Tensor values, gradient;  // of a part; else those of the replica
    OutsidePlace home;            // of the values, where they lie outside the device
    at::Tensor master;            // of two-byte values, which only an emulated device updates
    aten::OptimizerState state;
    bool clip_counts = true, norm_counts = true;  // in the norm over all, and in its tensor's: no other rank counts it
    bool away = false;                            // the values lie outside the device
  };
  void add_parts(std::size_t sync, const ShardedSync& shards);
  void add(LocalTensorId parameter, std::size_t block, at::Tensor values, at::Tensor gradient);
  [[nodiscard]] std::size_t block_of(LocalTensorId parameter) const;
  [[nodiscard]] std::size_t block_of(const StateBlock::Part& part) const;
  at::Tensor values(const Target& target) {
    TORCH_INTERNAL_ASSERT(!target.away || target.values.defined());
    return target.values.defined() ? target.values : replica_[target.parameter];
  }
  at::Tensor gradient(const Target& target);
  [[nodiscard]] bool counts(LocalTensorId parameter, const std::vector<MeshAxis>& axes) const;
  [[nodiscard]] bool clip_counts(LocalTensorId parameter) const;
  void update_by_norms();
  void update(Target& target);
  void compute();
  void emulate(EmulatedDevice& device);

  Replica& replica_;
  const Stage& stage_;
  int number_;
  const aten::OptimizerSettings& settings_;
  Communicator* parts_;
  std::vector<Target> targets_;
  std::unique_ptr<OffloadedState> offloaded_;  // none: state is here
};

}  // namespace sibyl::trainer

// What the optimizer does on one rank once gradients are complete: they are clipped by the norm over all parameters,
// and parameters updated; of sharded syncs the rank's parts. Norms of what other ranks hold parts of are summed with
// them.
#pragma once

#include <torch/types.h>
#include <memory>
#include <vector>

#include "aten/optimizer.h"
#include "trainer/replica.h"
#include "trainer/zero.h"

namespace sibyl::trainer {

class Updates {
 public:
  // The arguments must outlive it. `shards`: by Stage::gradients, null where it is not sharded. `parts`: of the ranks
  // whose norms are summed with this one's; may be null where there are none.
  Updates(Replica& replica, const std::vector<std::unique_ptr<ShardedSync>>& shards,
          const aten::OptimizerSettings& settings, Communicator* parts);

  // Gradients are dropped afterwards.
  void run();

 private:
  struct Target {
    LocalTensorId parameter;      // one of them, where it is a part of several
    std::size_t tensor = 0;       // its update
    at::Tensor values, gradient;  // of a part; else those of the replica
    aten::OptimizerState state;
    bool counts = true;  // for norms: no other rank counts it
  };
  void add_parts(const GradientSync& sync, const ShardedSync& shards);
  void add(LocalTensorId parameter, at::Tensor values, at::Tensor gradient);
  at::Tensor values(const Target& target) {
    return target.values.defined() ? target.values : replica_[target.parameter];
  }
  at::Tensor gradient(const Target& target);
  [[nodiscard]] bool counts(LocalTensorId parameter) const;
  void clip();
  void update_by_norms();
  void compute();
  void emulate(EmulatedDevice& device);

  Replica& replica_;
  const Stage& stage_;
  const aten::OptimizerSettings& settings_;
  Communicator* parts_;
  std::vector<Target> targets_;
};

}  // namespace sibyl::trainer

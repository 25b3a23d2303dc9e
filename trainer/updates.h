// What the optimizer does for one stage once gradients are complete: they are clipped by the norm over all parameters,
// and parameters updated; of sharded syncs the rank's parts. Norms of tensors that other ranks hold parts of are summed
// with them; the norm over all parameters, which other stages have their share of, is summed by who runs the stages.
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
  Updates(Replica& replica, int stage, const std::vector<std::unique_ptr<ShardedSync>>& shards,
          const aten::OptimizerSettings& settings, Communicator* parts);

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
    at::Tensor values, gradient;  // of a part; else those of the replica
    aten::OptimizerState state;
    bool clip_counts = true, norm_counts = true;  // in the norm over all, and in its tensor's: no other rank counts it
  };
  void add_parts(const ShardedSync& shards);
  void add(LocalTensorId parameter, at::Tensor values, at::Tensor gradient);
  at::Tensor values(const Target& target) {
    return target.values.defined() ? target.values : replica_[target.parameter];
  }
  at::Tensor gradient(const Target& target);
  [[nodiscard]] bool counts(LocalTensorId parameter, const std::vector<MeshAxis>& axes) const;
  [[nodiscard]] bool clip_counts(LocalTensorId parameter) const;
  void update_by_norms();
  void compute();
  void emulate(EmulatedDevice& device);

  Replica& replica_;
  const Stage& stage_;
  int number_;
  const aten::OptimizerSettings& settings_;
  Communicator* parts_;
  std::vector<Target> targets_;
};

}  // namespace sibyl::trainer

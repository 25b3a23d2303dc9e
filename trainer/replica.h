// One rank's share of a stage: its tensors, and the interpreter of its forward program. Exchanges between operations
// are run as they come.
//
// Every activation is dropped as soon as its last forward consumer has run, so that from then on only autograd keeps
// it, and only where backward needs it: the peak is the one that oracle/memory computes. What a pipeline's stage
// receives is put in before forward; what it sends can be taken out after it.
#pragma once

#include <torch/types.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "oracle/plan/plan.h"
#include "trainer/later_gradients.h"
#include "trainer/mesh_groups.h"
#include "trainer/recompute.h"

namespace sibyl::aten {
class Ring;
}

namespace sibyl::trainer {

class EmulatedDevice;
class OffloadedActivations;
class OperationSpans;

// Told of each step that runs, so that its parameters are there: of `before_backward` also where steps run again.
// `after_backward`: all from this step on have run backward.
struct StepWatch {
  std::function<void(std::size_t)> before_forward, after_forward, before_backward, after_backward;
};

class Replica {
 public:
  // Fails where the stage neither computes the loss nor sends anything. The graph, the stage and the groups must
  // outlive it. With `emulated` nothing is computed: that device runs it, and must outlive it, too.
  static Result<Replica> create(const Graph& graph, const Stage& stage, const MeshGroups& groups, std::uint64_t seed,
                                EmulatedDevice* emulated = nullptr);

  // What passes to come are of. What dropout draws depends on these, the seed, the operation, and which part of its
  // result this rank has: ranks that hold the same tensor drop the same, and a pass run again drops the same again.
  // Of a pipeline's stage inputs begin anew: passes before are on their way. What `later` is given, backward leaves to
  // it.
  void begin(std::int64_t step, int micro_batch, std::shared_ptr<LaterGradients> later = nullptr);

  void watch(StepWatch watch) { watch_ = std::move(watch); }

  // Where segments that run again keep what lies outside, if it does; must outlive it.
  void keep_outside(OffloadedActivations* outside) { outside_ = outside; }

  // Runs the forward program on what lies in the inputs; the result is the scalar loss, its graph recorded; undefined
  // where a later stage computes it. With `spans` each operation is timed.
  at::Tensor forward(OperationSpans* spans = nullptr);
  // The same as when a model is used: no dropout, batch-norm by its running statistics, no graph.
  // The result is the first operand of the loss, put together from all ranks' parts: logits or predictions.
  at::Tensor predict();
  // After a pass: what it sends.
  at::Tensor take(LocalTensorId id) { return std::exchange(tensors_[id.index()], at::Tensor()); }

  [[nodiscard]] const Graph& graph() const { return *graph_; }
  [[nodiscard]] const Stage& stage() const { return *stage_; }
  [[nodiscard]] const MeshGroups& groups() const { return *groups_; }
  [[nodiscard]] EmulatedDevice* emulated() const { return emulated_; }  // none: this machine itself
  [[nodiscard]] at::Tensor& operator[](LocalTensorId id) { return tensors_[id.index()]; }
  [[nodiscard]] const std::vector<LocalTensorId>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<LocalTensorId>& buffers() const { return buffers_; }
  [[nodiscard]] const std::vector<LocalTensorId>& inputs() const { return inputs_; }

 private:
  Replica(const Graph& graph, const Stage& stage, const MeshGroups& groups, std::uint64_t seed,
          EmulatedDevice* emulated);
  at::Tensor initial(LocalTensorId id) const;
  bool find_loss();
  void find_last_uses();
  void find_kept_operands();
  std::vector<at::Tensor> operands(const Compute& compute) const;
  void run_step(std::size_t index, bool training);
  void run_segment(const Segment& segment);
  Elsewhere leave(std::size_t segment, const std::vector<at::Tensor>& inputs);
  std::vector<at::Tensor> run_again(const Segment& segment, const std::vector<at::Tensor>& inputs);
  void run_training(std::size_t index);
  void watch_backward(std::size_t index);
  void compute(std::size_t step, bool training);
  void exchange(std::size_t step, bool training);
  std::shared_ptr<aten::Ring> ring();
  [[nodiscard]] bool puts_off(std::size_t step) const;
  void seed_draws(const Compute& compute) const;
  void keep(const Compute& compute, std::vector<at::Tensor> results);
  void drop_after(std::size_t step);

  const Graph* graph_;
  const Stage* stage_;
  const MeshGroups* groups_;
  EmulatedDevice* emulated_;
  OffloadedActivations* outside_ = nullptr;
  StepWatch watch_;
  OperationSpans* spans_ = nullptr;
  bool records_ = true;  // else what is computed is computed again for backward
  bool again_ = false;   // which is now
  std::uint64_t seed_, pass_seed_;
  int micro_batch_ = 0;                     // of the pass
  std::shared_ptr<aten::Ring> ring_;        // of the context axis, once attention asks for it
  std::vector<std::uint32_t> later_masks_;  // by step; empty where backward is in one part
  std::shared_ptr<LaterGradients> later_;   // of the pass
  std::vector<at::Tensor> tensors_;         // by LocalTensorId; activations come and go
  std::vector<LocalTensorId> parameters_, buffers_, inputs_;
  std::vector<bool> reads_kept_;                           // by step: some of what its segment keeps
  std::vector<std::vector<LocalTensorId>> dropped_after_;  // by step
  std::size_t loss_step_ = 0;
  LocalTensorId loss_;  // the scalar that backward starts from
};

}  // namespace sibyl::trainer

// One stage of the plan on one rank: its replica, what feeds it, exchanges its gradients and updates it. Takes the
// turns of a schedule over micro-batches; between a forward and its backward it holds what backward begins from.
#pragma once

#include <torch/types.h>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "aten/optimizer.h"
#include "trainer/data.h"
#include "trainer/emulated_device.h"
#include "trainer/gradient_exchange.h"
#include "trainer/measurement.h"
#include "trainer/offload_activations.h"
#include "trainer/operation_spans.h"
#include "trainer/replica.h"
#include "trainer/updates.h"
#include "trainer/zero.h"

namespace sibyl::trainer {

class StageWorker {
 public:
  // Of plan.stages[stage]: no communication. The arguments must outlive it. `clock`: of an emulated device.
  static Result<std::unique_ptr<StageWorker>> prepare(const Graph& graph, const Plan& plan, int stage,
                                                      const TrainSettings& settings, const MeshGroups& groups,
                                                      EmulatedClock& clock);
  StageWorker(const StageWorker&) = delete;
  StageWorker& operator=(const StageWorker&) = delete;

  void begin_step(std::int64_t number);

  // Of an emulated device: how tensors are made there; and the host has waited for a neighbour until now. Else nothing.
  [[nodiscard]] std::function<at::Tensor(const LocalTensor&)> maker() const;
  void wake();

  // Before a forward turn: the micro-batch's samples.
  void fill_inputs(const Turn& turn);
  // A forward turn: `received` is what the stage before sent, in the order of Stage::receives. The result is the
  // micro-batch's loss, as its share of the step's; 0 where a later stage computes it. `sent` gets what goes on.
  double forward(const Turn& turn, std::vector<at::Tensor> received, std::vector<at::Tensor>& sent);
  // A backward turn of any kind: from the gradients of what was sent to those of what was received.
  std::vector<at::Tensor> backward(const Turn& turn, std::vector<at::Tensor> gradients);
  // After it: where the micro-batch's gradients are reduced and others are to come, waits for their sums.
  void add_up();
  // Of a device beside the host, where forward() gives 0: the step's losses, once the device is done.
  double late_losses();

  // After the last turn, in this order. finish_exchange() leaves out tied(): exchanges with other stages, which all
  // ranks must finish in one order; copy_back() only where it is told so; unscale() does something where the loss was
  // scaled; squares() and clip() where gradients are clipped by a norm (trainer/updates.h).
  void finish_exchange();
  [[nodiscard]] std::vector<GradientExchange*> tied() const;
  // Parts are copied when their buffers are wanted again; an emulated device does it once.
  [[nodiscard]] bool copies_back() const {
    return !exchanges_.empty() || (emulated_ && emulated_->times().copies_back.duration.value() > 0);
  }
  void copy_back();
  void unscale();
  double squares();
  void clip(double squares);
  void update();
  void gather_updated();

  // As forward(), of samples to evaluate on, in their order from `first` on: the answers, undefined in stages before
  // the last.
  at::Tensor predict(Data& data, std::int64_t first, std::vector<at::Tensor> received, std::vector<at::Tensor>& sent);
  Result<Data> data_of(const std::filesystem::path& folder, std::int64_t least);
  [[nodiscard]] std::int64_t samples() const { return data_ ? data_->samples() : 0; }

  // Parameters that ranks hold parts of are whole from one to the other: for who reads them between steps.
  void gather_parameters();
  void release_parameters();

  // Records the steps to come; nullptr: no longer.
  void record(Recorder* recorder);

  [[nodiscard]] OffloadedBytes offloaded() const;  // so far; between steps
  // Of an emulated device: what the kernels of the step were to take.
  [[nodiscard]] Seconds busy() const { return emulated_ ? emulated_->busy() : Seconds{}; }
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] const Stage& stage() const { return replica_->stage(); }
  [[nodiscard]] Replica& replica() { return *replica_; }
  [[nodiscard]] const MeasuredMemory& memory() const { return memory_; }  // without the peak

 private:
  // Of a micro-batch that is on its way.
  struct Pass {
    std::vector<at::Tensor> received, sent;
    at::Tensor loss;
    std::shared_ptr<LaterGradients> later;
  };

  StageWorker(const Plan& plan, int stage, const TrainSettings& settings, const MeshGroups& groups);
  Result<void> open_syncs();
  void put_in(std::vector<at::Tensor> received);
  std::vector<at::Tensor> take_out();
  std::vector<at::Tensor> run_backward(Pass& pass, std::vector<at::Tensor> gradients);
  // Of a micro-batch's gradients; not the `first` of a step that exchanges each: added to what came before.
  void begin_exchange(bool first);
  void pack();

  const Plan* plan_;
  int number_;
  const TrainSettings* settings_;
  const MeshGroups* groups_;
  std::unique_ptr<EmulatedDevice> emulated_;       // none: this machine's own
  std::unique_ptr<OffloadedActivations> outside_;  // none: activations are here
  std::unique_ptr<Replica> replica_;               // where the exchanges' hooks find it
  std::unique_ptr<Data> data_;
  std::vector<std::unique_ptr<GradientExchange>> exchanges_;  // by GradientSync
  std::vector<std::unique_ptr<ShardedSync>> shards_;          // the same; each sync is one or the other
  aten::OptimizerSettings optimizer_;
  std::unique_ptr<Updates> updates_;
  std::vector<LocalTensorId> now_;  // parameters whose gradients are never put off, where others' are
  MeasuredMemory memory_;

  std::int64_t step_ = 0;
  int closed_ = 0;              // backwards of the step that are over
  bool adds_up_ = false;        // before the next turn
  std::map<int, Pass> passes_;  // by micro-batch
  std::vector<at::Tensor> losses_;
  Recorder* recorder_ = nullptr;
  std::unique_ptr<OperationSpans> spans_;  // while it is recorded
};

}  // namespace sibyl::trainer

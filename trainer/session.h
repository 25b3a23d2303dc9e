// A training run on one rank: the replica, its data, optimizer and exchange, and the step that ties them together.
#pragma once

#include <memory>
#include <vector>

#include "aten/optimizer.h"
#include "trainer/data.h"
#include "trainer/emulated_device.h"
#include "trainer/gradient_exchange.h"
#include "trainer/measurement.h"
#include "trainer/operation_spans.h"
#include "trainer/recorder.h"
#include "trainer/replica.h"
#include "trainer/updates.h"
#include "trainer/zero.h"

namespace sibyl::trainer {

class Session {
 public:
  // On this rank alone: no communication. The arguments must outlive it.
  static Result<Session> prepare(const Graph& graph, const Plan& plan, const TrainSettings& settings,
                                 Communicator& communicator, const MeshGroups& groups);

  struct Step {
    StepTimes times;
    double loss = 0.0;  // the mean over this rank's samples
    std::int64_t bytes_sent = 0;
    std::int64_t peak_bytes = 0;
  };
  Step step(std::int64_t number);
  // One more step, as a timeline. All ranks begin it together.
  TraceProcess traced_step(std::int64_t number);

  // Of the data to evaluate on: the share of samples whose greatest logit is the target's, over all ranks.
  double accuracy();
  // Whether ranks that hold the same parts of parameters hold the same, bit for bit.
  bool replicas_agree();

  // Parameters that ranks hold parts of are whole from one to the other: for who reads them between steps.
  void gather_parameters();
  void release_parameters();

  [[nodiscard]] Replica& replica() { return *replica_; }
  // Without the peak.
  [[nodiscard]] MeasuredMemory memory() const { return memory_; }

 private:
  Session(const Plan& plan, const TrainSettings& settings, Communicator& communicator, const MeshGroups& groups)
      : plan_(&plan), settings_(&settings), communicator_(&communicator), groups_(&groups) {}
  Result<void> open_evaluation(const std::filesystem::path& folder);
  [[nodiscard]] const Stage& stage() const { return plan_->stages.front(); }
  double forward_and_backward(std::int64_t number, StepTimes& times);
  void fill_inputs(std::int64_t first);
  Result<void> open_data();
  void open_syncs();
  void begin_exchange(bool first_step);
  void pack();
  void finish_exchange();
  void copy_back();
  void update();

  const Plan* plan_;
  const TrainSettings* settings_;
  Communicator* communicator_;
  const MeshGroups* groups_;
  std::unique_ptr<EmulatedDevice> emulated_;  // none: this machine's own
  std::unique_ptr<Replica> replica_;  // where the exchanges' hooks find it
  std::unique_ptr<Data> data_;
  std::unique_ptr<Recorder> recorder_;                        // within a traced step; the exchanges' threads use it
  OperationSpans* spans_ = nullptr;                           // within a traced step
  std::unique_ptr<Data> evaluation_;                          // none unless asked for
  std::vector<std::unique_ptr<GradientExchange>> exchanges_;  // by GradientSync
  std::vector<std::unique_ptr<ShardedSync>> shards_;          // the same; each sync is one or the other
  std::unique_ptr<aten::OptimizerSettings> optimizer_;
  std::unique_ptr<Updates> updates_;
  MeasuredMemory memory_;
};

}  // namespace sibyl::trainer

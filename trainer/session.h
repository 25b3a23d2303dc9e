// A training run on one rank: the stages it works at, what they hand to its neighbours in the pipeline, and the step
// that ties them together.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "trainer/links.h"
#include "trainer/measurement.h"
#include "trainer/recorder.h"
#include "trainer/stage_worker.h"

namespace sibyl::trainer {

class Session {
 public:
  // On this rank alone: no communication. The arguments must outlive it.
  static Result<Session> prepare(const Graph& graph, const Plan& plan, const TrainSettings& settings,
                                 Communicator& communicator, const MeshGroups& groups);

  struct Step {
    StepTimes times;
    double loss = 0.0;  // the mean over this rank's samples; 0 where another stage computes it
    BytesSent bytes_sent;
    OffloadedBytes offloaded;
    std::int64_t peak_bytes = 0;
    Seconds busy;  // of an emulated device: what its kernels were to take
    Bytes grown;   // by so much this process's memory
  };
  Step step(std::int64_t number);
  // One more step, as a timeline. All ranks begin it together. `source` says what is shown: "measured", or emulated.
  TraceProcess traced_step(std::int64_t number, std::string_view source);

  // By all ranks together. Fails, on all of them, where files of samples that different stages read do not fit each
  // other: those to train on, or those to evaluate on.
  [[nodiscard]] Result<void> check_data() const;
  // Of the data to evaluate on: the share of samples whose greatest logit is the target's, over all ranks.
  double accuracy();
  // Whether ranks that hold the same parts of parameters hold the same, bit for bit.
  bool replicas_agree();

  // Parameters that ranks hold parts of are whole from one to the other: for who reads them between steps.
  void gather_parameters();
  void release_parameters();

  [[nodiscard]] const Graph& graph() const { return workers_.front()->replica().graph(); }
  [[nodiscard]] const Plan& plan() const { return *plan_; }
  [[nodiscard]] const MeshGroups& groups() const { return *groups_; }
  // By stage number; nullptr where another rank has it.
  [[nodiscard]] StageWorker* worker(int stage) const;
  [[nodiscard]] const std::vector<std::unique_ptr<StageWorker>>& workers() const { return workers_; }
  // Is this the rank whose loss is shown?
  [[nodiscard]] bool shows_loss() const;
  [[nodiscard]] MeasuredMemory memory() const;  // without the peak

 private:
  Session(const Plan& plan, Communicator& communicator, const MeshGroups& groups)
      : plan_(&plan), communicator_(&communicator), groups_(&groups), links_(plan, groups) {}
  double take_turns(StepTimes& times);
  void finish_exchanges();
  void clip();
  double take(const Turn& turn, StepTimes& times);
  std::vector<at::Tensor> wait_for(const Turn& turn, StepTimes& times);
  [[nodiscard]] bool is_first_rank_of_stage() const;
  at::Tensor predict(std::int64_t first);
  [[nodiscard]] Result<void> check_samples(std::int64_t most, const char* option) const;

  const Plan* plan_;
  Communicator* communicator_;
  const MeshGroups* groups_;
  std::unique_ptr<EmulatedClock> clock_ = std::make_unique<EmulatedClock>();  // of the device that its stages lie on
  std::vector<std::unique_ptr<StageWorker>> workers_;                         // ascending
  Links links_;
  std::vector<std::unique_ptr<Data>> evaluation_;  // by worker; none unless asked for
  std::unique_ptr<Recorder> recorder_;             // within a traced step; the exchanges' threads use it
  Seconds filling_;                                // of the step: the host wrote samples, and no device computed
};

}  // namespace sibyl::trainer

// What segments that run again keep, outside the device from their forward to their backward
// (oracle/plan/offload_activations.h): the plan's copies, run by a thread.
//
// A slot outside is that of one micro-batch, from its forward to its backward: as many as the stage has on their way.
#pragma once

#include <torch/types.h>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "base/result.h"
#include "oracle/plan/plan.h"
#include "trainer/copy_thread.h"
#include "trainer/outside.h"
#include "trainer/recorder.h"

namespace sibyl::trainer {

class EmulatedDevice;

class OffloadedActivations {
 public:
  // The stage must outlive it. With `emulated` nothing is moved: that device's copies take their time.
  static Result<std::unique_ptr<OffloadedActivations>> create(const Stage& stage, const std::filesystem::path& folder,
                                                              EmulatedDevice* emulated = nullptr);
  OffloadedActivations(const OffloadedActivations&) = delete;
  OffloadedActivations& operator=(const OffloadedActivations&) = delete;

  // Before a segment runs: what it reads of Stage::kept_outside[segment], in that order, begins to leave. After it: it
  // has left.
  void leave(int micro_batch, std::size_t segment, std::vector<at::Tensor> kept);
  void left(int micro_batch, std::size_t segment);
  // Before a backward: the last segment's begins to come. When a segment's is wanted: it is there, and that of the one
  // before begins to come.
  void begin_backward(int micro_batch);
  std::vector<at::Tensor> fetch(int micro_batch, std::size_t segment);

  [[nodiscard]] OffloadedBytes moved() const { return moved_; }  // so far; between steps
  // Records the copies of the steps to come; nullptr: no longer.
  void record(Recorder* recorder) { recorder_ = recorder; }

 private:
  struct Kept {
    std::vector<at::Tensor> tensors;    // that are here
    std::int64_t place = 0, bytes = 0;  // where they lie
    std::size_t copy = 0;               // number of the last one
  };
  using Slot = std::vector<Kept>;  // by segment
  OffloadedActivations(const Stage& stage, EmulatedDevice* emulated) : stage_(stage), emulated_(emulated) {}
  void bring_before(Slot& slot, std::size_t segment);
  void begin_copy(Kept& kept, std::size_t segment, OffloadCopy::Way way);
  void move(const Kept& kept, OffloadCopy::Way way) const;
  void wait(std::size_t copy);

  const Stage& stage_;
  EmulatedDevice* emulated_;          // none: this machine itself
  std::unique_ptr<Outside> outside_;  // of an emulated device none
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;       // of these
  std::map<int, std::size_t> slot_of_;  // by micro-batch that is on its way
  OffloadedBytes moved_;
  Recorder* recorder_ = nullptr;
  CopyThread thread_;  // last: what it runs uses the others
};

}  // namespace sibyl::trainer

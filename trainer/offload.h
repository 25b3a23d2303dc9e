// Optimizer state, and parts of parameters, that lie outside the device but for their update (oracle/plan/offload.h):
// the plan's copies, run.
//
// A thread makes them in the plan's order. A block's tensors have memory of the device from when its reading begins
// until the block after the next is wanted; then its writing is over.
#pragma once

#include <torch/types.h>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "oracle/plan/plan.h"
#include "trainer/copy_thread.h"
#include "trainer/outside.h"
#include "trainer/recorder.h"

namespace sibyl::trainer {

class EmulatedDevice;

class OffloadedState {
 public:
  // A tensor of a block, where it is while it is here; and where it lies else, if that is somebody else's to know: a
  // part of parameters, which is gathered from there.
  struct Guest {
    at::Tensor* tensor = nullptr;
    Shape shape;
    at::ScalarType type = at::kFloat;
    OutsidePlace home = {};
  };
  using Guests = std::vector<Guest>;
  // Of stage.blocks. Takes away what is there, which must be zeros if it has no home. The arguments, but `folder`, must
  // outlive it. With `emulated` nothing is moved: that device's copies take their time.
  static Result<std::unique_ptr<OffloadedState>> create(const Stage& stage, std::vector<Guests> guests,
                                                        const std::filesystem::path& folder,
                                                        EmulatedDevice* emulated = nullptr);
  OffloadedState(const OffloadedState&) = delete;
  OffloadedState& operator=(const OffloadedState&) = delete;

  // Within a step's updates: each block, in order, when those before it have been updated; then it is here.
  void bring(std::size_t block);
  // When all have been: until everything is where it lies.
  void finish();

  [[nodiscard]] OffloadedBytes moved() const { return moved_; }  // so far; between steps
  // Records the copies of the steps to come; nullptr: no longer.
  void record(Recorder* recorder) { recorder_ = recorder; }

 private:
  struct Block {
    Guests guests;
    std::int64_t place = 0, bytes = 0;     // where those without a home lie
    std::size_t reading = 0, writing = 0;  // numbers of this step's copies
  };
  OffloadedState(const Stage& stage, EmulatedDevice* emulated) : stage_(stage), emulated_(emulated) {}
  void begin_copies(std::size_t updated);
  void copy(const OffloadCopy& copy);
  void make_room(Block& block) const;
  void move(const Block& block, OffloadCopy::Way way) const;
  static void give_up(Block& block);

  const Stage& stage_;
  EmulatedDevice* emulated_;          // none: this machine itself
  std::unique_ptr<Outside> outside_;  // of what has no home; where that is nothing, none
  std::vector<Block> blocks_;
  std::size_t next_ = 0;  // of the stage's copies
  OffloadedBytes moved_;
  Recorder* recorder_ = nullptr;
  CopyThread thread_;  // last: what it runs uses the others
};

}  // namespace sibyl::trainer

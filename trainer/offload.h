// Optimizer state that lies outside the device but for its update (oracle/plan/offload.h): the plan's copies, run.
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

class OffloadedState {
 public:
  // Where a block's tensors are while they are here.
  using Tensors = std::vector<at::Tensor*>;
  // Of stage.blocks. Takes away what is there, which must be zeros. The arguments, but `folder`, must outlive it.
  static Result<std::unique_ptr<OffloadedState>> create(const Stage& stage, std::vector<Tensors> tensors,
                                                        const std::filesystem::path& folder);
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
    Tensors tensors;
    std::vector<Shape> shapes;
    std::int64_t place = 0, bytes = 0;     // where it lies
    std::size_t reading = 0, writing = 0;  // numbers of this step's copies
  };
  OffloadedState(const Stage& stage, Outside outside) : stage_(stage), outside_(std::move(outside)) {}
  void begin_copies(std::size_t updated);
  void copy(const OffloadCopy& copy);
  void make_room(Block& block);
  void give_up(Block& block);

  const Stage& stage_;
  Outside outside_;
  std::vector<Block> blocks_;
  std::size_t next_ = 0;  // of the stage's copies
  OffloadedBytes moved_;
  Recorder* recorder_ = nullptr;
  CopyThread thread_;  // last: what it runs uses the others
};

}  // namespace sibyl::trainer

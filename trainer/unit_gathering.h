// Parameters of units (oracle/plan/zero.h): gathered before a unit is read, let go when it is read no more.
//
// Of a unit's bucket only the rank's part is kept: the flat tensor's memory is there from gathering to release.
// Gathering goes on beside computation, in the order in which it is asked for, which is the program's and so the same
// on all ranks. Where that part lies outside the device (oracle/plan/offload_parameters.h), a thread brings it before
// it is gathered.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "oracle/plan/plan.h"
#include "trainer/copy_thread.h"
#include "trainer/emulated_device.h"
#include "trainer/outside.h"
#include "trainer/recorder.h"
#include "trainer/shard.h"
#include "trainer/shard_messages.h"

namespace sibyl::trainer {

class UnitGathering {
 public:
  // Of the units of Stage::gradients[sync], among `shards`, which are laid out. Null `emulated`: this machine itself.
  // The arguments must outlive it.
  UnitGathering(const Stage& stage, std::size_t sync, std::vector<Shard>& shards, ShardMessages& messages,
                EmulatedDevice* emulated);

  // As ShardedSync's.
  Result<void> move_out(const std::filesystem::path& folder);
  [[nodiscard]] OffloadedBytes moved() const { return moved_; }
  [[nodiscard]] bool lie_outside() const { return copying_ != nullptr; }
  void record(Recorder* recorder) { recorder_ = recorder; }

  void before_forward(std::size_t step);
  void after_forward(std::size_t step);
  void begin_backward();
  void before_backward(std::size_t step);
  void after_backward(std::size_t first);
  // Nobody reads the shard's parameters any more: to be called before its last gradients are sent, and once they are.
  void about_to_send(Shard& shard);
  void read_no_more(Shard& shard);

  void gather_all();
  void release_all();

 private:
  void own(std::size_t unit);
  void bring(Shard& shard);
  void gather(Shard& shard);
  void need(Shard& shard);
  void release(Shard& shard);
  void resize(Shard& shard, std::int64_t elements) const;

  const Stage& stage_;
  std::vector<Shard>& shards_;      // by bucket
  std::vector<std::size_t> units_;  // their buckets, in the units' order
  ShardMessages& messages_;
  EmulatedDevice* emulated_;
  bool splits_;                       // gradients of weights are put off
  std::unique_ptr<Outside> outside_;  // where parts of units lie; none: here, or on an emulated device
  OffloadedBytes moved_;
  Recorder* recorder_ = nullptr;
  std::unique_ptr<CopyThread> copying_;  // none: parts of units are here. Last: what it runs uses the others
};

}  // namespace sibyl::trainer

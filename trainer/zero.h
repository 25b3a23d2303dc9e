// Gradients, optimizer state and parameters that ranks hold by parts: a sharded GradientSync, run (oracle/plan/zero.h).
//
// The parameters of a bucket lie in one flat tensor, of which each is a view; a rank's part of it is what it updates.
// As gradients are finished they are copied, times 1 / replicas, into the bucket's buffer and dropped; a full buffer is
// reduce-scattered beside backward. After the update the parts are gathered, those of units before they are read
// (unit_gathering.h); whoever updates a part that lies outside the device takes it back there.
#pragma once

#include <torch/types.h>
#include <filesystem>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "oracle/plan/zero.h"
#include "trainer/outside.h"
#include "trainer/recorder.h"
#include "trainer/replica.h"

namespace sibyl::trainer {

class ShardedSync {
 public:
  // Of Stage::gradients[index], over the communicator's ranks, which hold all parts, and `copies`, which hold this
  // rank's part; null where nobody else does. Of all of them `replicas` have samples of their own. Makes the replica's
  // parameters views. The arguments must outlive it.
  ShardedSync(Replica& replica, std::size_t index, Communicator& communicator, Communicator* copies, int replicas);
  ~ShardedSync();
  ShardedSync(const ShardedSync&) = delete;
  ShardedSync& operator=(const ShardedSync&) = delete;

  // Where the plan says so, takes the rank's parts of units out of the device; before the first step.
  Result<void> move_out(const std::filesystem::path& folder);
  [[nodiscard]] OffloadedBytes moved() const;  // so far; between steps

  // As GradientExchange; the rank's parts of the sums are its gradients, or, unless these are the `first` to be reduced
  // in this step, are added to them.
  void begin(const std::vector<LocalTensorId>& complete, bool first);
  void pack();
  void finish();
  void record(Recorder* recorder);

  // The rank's part of a bucket: what it updates, and after finish() its gradient.
  struct Part {
    const Bucket* bucket = nullptr;
    BucketPart range;  // of the bucket
    at::Tensor parameters, gradients;
    OutsidePlace home = {};  // of the parameters, where they lie outside: then these are not here
  };
  [[nodiscard]] std::vector<Part> parts() const;
  void gather_updated();  // after the update

  // Before a backward turn of this kind; around a step of forward; before one of backward or of what is computed again
  // for it, and once all from a first one on have run backward.
  void begin_backward(Turn::Kind kind);
  void before_forward(std::size_t step);
  void after_forward(std::size_t step);
  void before_backward(std::size_t step);
  void after_backward(std::size_t first);
  // All parameters, for who reads them between steps.
  void gather_all();
  void release_all();

  [[nodiscard]] Bytes weights() const;        // kept between steps
  [[nodiscard]] Bytes communication() const;  // buffers

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sibyl::trainer

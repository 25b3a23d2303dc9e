// Averages gradients over replicas in the plan's buckets, while backward goes on or after it, as PyTorch's
// DistributedDataParallel does (Li et al., "PyTorch Distributed", VLDB 2020).
//
// A hook on each parameter's gradient accumulator copies the finished gradient (gradient_arrivals.h), times
// 1 / replicas, to its place in the bucket's flat buffer. A full bucket, once all earlier ones have gone, is handed to
// the communication thread, which all-reduces buckets in their order, beside backward. pack() copies the rest; finish()
// waits; copy_back() copies the means back into the gradients.
#pragma once

#include <torch/types.h>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "trainer/recorder.h"
#include "trainer/replica.h"

namespace sibyl::trainer {

class GradientExchange {
 public:
  // Gradients are summed over the communicator's ranks, of which `replicas` have samples of their own: the mean is
  // taken over those. The arguments must outlive it; from begin() to finish() the communicator is the thread's.
  GradientExchange(Replica& replica, const GradientSync& sync, Communicator& communicator, int replicas);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  // Before the last backward, whose gradients are those of the whole step; `complete` ones are that already.
  void begin(bool first_step, const std::vector<LocalTensorId>& complete);
  // After it: copies what no hook has copied (all of it, if nothing overlaps) into the buckets. A parameter without a
  // gradient counts as zero.
  void pack();
  // Sends what is not on its way, and waits until all buckets are averaged. Of parameters that several stages hold it
  // first waits until all who take part have come here: they must do so in one order, if there are several such.
  void finish();
  void copy_back();
  [[nodiscard]] const GradientSync& sync() const;
  // Records the all-reduces of the steps to come; nullptr: no longer.
  void record(Recorder* recorder);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sibyl::trainer

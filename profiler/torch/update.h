// The two kernels of a step that are not operations of the model: the optimizer's update of a parameter, and the copy
// of a gradient into (or out of) a communication bucket that already exists. Neither is recorded by autograd.
#pragma once

#include <torch/types.h>

#include "aten/optimizer.h"
#include "profiler/kernel_key.h"
#include "profiler/torch/bench.h"

namespace sibyl {

class UpdateBench {
 public:
  explicit UpdateBench(const KernelKey& key);
  void run();

 private:
  OptimizerUpdate update_;
  at::Tensor value_, gradient_;
  aten::OptimizerState state_;
};

class CopyBench {
 public:
  CopyBench(const KernelKey& key, bool cold);
  void make_gradient() { made_.make(); }  // as backward leaves it
  void run();

 private:
  at::Tensor source_, target_;
  JustMade made_;
};

}  // namespace sibyl

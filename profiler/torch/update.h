// The two kernels of a step that are not operations of the model: the optimizer's update of a parameter, and the copy
// of a gradient into (or out of) a communication bucket that already exists. Neither is recorded by autograd.
#pragma once

#include <torch/types.h>

#include <vector>

#include "aten/optimizer.h"
#include "profiler/kernel_key.h"

namespace sibyl {

class UpdateBench {
 public:
  UpdateBench(const KernelKey& key, int copies);
  void run(int copy);

 private:
  struct Parameter {
    at::Tensor value, gradient;
    aten::OptimizerState state;
  };
  OptimizerUpdate update_;
  std::vector<Parameter> parameters_;
};
// Of one copy: parameter, gradient, state.
Bytes bytes_touched_by_update(const KernelKey& key);

class CopyBench {
 public:
  CopyBench(const KernelKey& key, int copies);
  void warm(int copy);  // the gradient has just been computed
  void run(int copy);

 private:
  std::vector<at::Tensor> sources_, targets_;
};

}  // namespace sibyl

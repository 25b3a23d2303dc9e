// One kernel set up to be run: its operands in as many copies as asked for, and its passes through ATen and autograd.
#pragma once

#include <torch/types.h>

#include <vector>

#include "profiler/kernel_key.h"

namespace sibyl {

class Bench {
 public:
  using Tensors = std::vector<torch::Tensor>;

  // Throws what libtorch throws; std::invalid_argument where the key's backward does not exist.
  Bench(const KernelKey& key, int copies);

  // Forward of one copy; its results, and the graph that autograd records, stay until release().
  void forward(int copy);
  // Gradients of the masked operands from the results of forward(copy), whose graph is used up.
  [[nodiscard]] Tensors backward(int copy);
  // What the engine does without a single node: start, hand the same number of gradients through, stop.
  [[nodiscard]] Tensors empty_backward(int copy);
  void release(int copy) { results_[at(copy)].clear(); }

  // Leaves the operand (or the result's gradient) that a step computes just before this pass as if just computed.
  void warm_operand(int copy);
  void warm_gradient(int copy);

  // Memory that the results of forward(copy) own themselves; a view owns none.
  [[nodiscard]] double result_bytes(int copy) const;

 private:
  static std::size_t at(int copy) { return static_cast<std::size_t>(copy); }
  [[nodiscard]] Tensors differentiated(int copy) const;  // the results that gradients enter through

  KernelKey key_;
  std::vector<Tensors> operands_, masked_, results_, result_gradients_;
};

// Bytes of a copy's operands and results, and in backward of the gradients too: what rotates through the cache.
Bytes bytes_touched(const KernelKey& key);

}  // namespace sibyl

// One kernel set up to be run: its operands, and its passes through ATen and autograd.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "profiler/kernel_key.h"

namespace sibyl {

class Bench {
 public:
  using Tensors = std::vector<torch::Tensor>;

  // Throws what libtorch throws; std::invalid_argument where the key's backward does not exist.
  explicit Bench(const KernelKey& key);

  // Results, and the graph that autograd records, stay until release().
  void forward();
  // Gradients of the masked operands from the results of forward(), whose graph is used up.
  Tensors backward();
  // In the next backward only the pass itself holds the results' gradients, as in a step: what runs as
  // several nodes gives them back after its first one.
  void hand_over_gradients();
  // What the engine does without a single node: start, hand the same number of gradients through, stop.
  [[nodiscard]] Tensors empty_backward();
  void release() { results_.clear(); }

  // Leaves the operand (or the result's gradient) that a step computes just before this pass as if just computed.
  void warm_operand();
  void warm_gradient();

  [[nodiscard]] const Tensors& results() const { return results_; }
  // Memory that `tensors` own and neither the operands nor the results' gradients share: a view owns none.
  [[nodiscard]] std::int64_t own_bytes(const Tensors& tensors) const;

 private:
  [[nodiscard]] Tensors differentiated() const;  // the results that gradients enter through

  KernelKey key_;
  Tensors operands_, masked_, results_, result_gradients_;
};

// Reads and writes a floating tensor without changing it: afterwards it is as cached as after it was computed.
void write_again(torch::Tensor& tensor);

}  // namespace sibyl

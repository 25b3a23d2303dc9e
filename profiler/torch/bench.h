// One kernel set up to be run: its operands in as many copies as asked for, and its passes through ATen and autograd.
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
  Bench(const KernelKey& key, int copies);

  // Forward of one copy; its results, and the graph that autograd records, stay until release().
  void forward(int copy);
  // Gradients of the masked operands from the results of forward(copy), whose graph is used up.
  Tensors backward(int copy);
  // In the next backward of this copy only the pass itself holds the results' gradients, as in a step: what runs as
  // several nodes gives them back after its first one.
  void hand_over_gradients(int copy);
  // What the engine does without a single node: start, hand the same number of gradients through, stop.
  [[nodiscard]] Tensors empty_backward(int copy);
  void release(int copy) { results_[at(copy)].clear(); }

  // Leaves the operand (or the result's gradient) that a step computes just before this pass as if just computed.
  void warm_operand(int copy);
  void warm_gradient(int copy);

  [[nodiscard]] const Tensors& results(int copy) const { return results_[at(copy)]; }
  // Memory that `tensors` own and neither the operands nor the results' gradients share: a view owns none.
  [[nodiscard]] std::int64_t own_bytes(const Tensors& tensors, int copy) const;

 private:
  static std::size_t at(int copy) { return static_cast<std::size_t>(copy); }
  [[nodiscard]] Tensors differentiated(int copy) const;  // the results that gradients enter through

  KernelKey key_;
  std::vector<Tensors> operands_, masked_, results_, result_gradients_;
};

// Bytes of a copy's operands and results, and in backward of the gradients too: what rotates through the cache.
Bytes bytes_touched(const KernelKey& key);
Bytes bytes_of(const std::vector<Shape>& shapes, DType type);

// Reads and writes a floating tensor without changing it: afterwards it is as cached as after it was computed.
void write_again(torch::Tensor& tensor);

}  // namespace sibyl

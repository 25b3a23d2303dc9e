// One kernel set up to be run: its operands, and its passes through ATen and autograd.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "profiler/kernel_key.h"

namespace sibyl {

// A tensor as the operation before leaves it: written, from another that was itself written right before. Memory that
// was only read and written again in its place is found less by the next operation, on some machines not at all
// (docs/calibrate.md, The same state of the caches).
class JustMade {
 public:
  // `cold`: nothing of it is left in the cache until it is made. Else it is only read and written again in its place.
  // Nothing happens to a tensor of integers, or none.
  JustMade(const torch::Tensor& tensor, bool cold);
  void make();  // its values stay

 private:
  torch::Tensor tensor_, source_;
};

class Bench {
 public:
  using Tensors = std::vector<torch::Tensor>;

  // Throws what libtorch throws; std::invalid_argument where the key's backward does not exist.
  // `cold`: nothing of what it touches is left in the cache from one run to the next.
  Bench(const KernelKey& key, bool cold);

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

  // Leaves the first activation (in backward the results' gradients) as the operation before this pass leaves it.
  void make_incoming();

  [[nodiscard]] const Tensors& results() const { return results_; }
  // Memory that `tensors` own and neither the operands nor the results' gradients share: a view owns none.
  [[nodiscard]] std::int64_t own_bytes(const Tensors& tensors) const;

 private:
  [[nodiscard]] Tensors differentiated() const;  // the results that gradients enter through

  KernelKey key_;
  Tensors operands_, masked_, results_, result_gradients_;
  std::vector<JustMade> made_;  // right before the pass
};

}  // namespace sibyl

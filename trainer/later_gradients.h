// Backward in two parts (Turn::backward_input, backward_weight): gradients of weights that are put off.
//
// An operation whose weights' gradients may wait (plan: later_gradients()) is recorded as a graph of its own, behind
// one node of the outer graph. When backward reaches that node it computes the gradients of the other operands alone
// and notes what came in; run() computes the rest, operation by operation. What autograd keeps for an operation lives
// until then.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/types.h>
#include <cstdint>
#include <functional>
#include <vector>

namespace sibyl::trainer {

// Of one micro-batch.
class LaterGradients {
 public:
  // Runs the operation on its operands. `later`: mask of operands whose gradients run() computes. This object must live
  // until backward has come by.
  std::vector<at::Tensor> record(
      std::uint32_t later, const std::vector<at::Tensor>& operands,
      const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& operation);

  // After backward: adds gradients where leaves keep them; hooks of accumulators run.
  void run();

  // By a node, when backward reaches it: `gradient` arrived at `root`; `leaves` are to get theirs.
  void note(torch::autograd::Edge root, at::Tensor gradient, const std::vector<torch::autograd::Edge>& leaves);

 private:
  // What shares leaves runs in one pass, so that each leaf's hooks run once.
  struct Group {
    std::vector<torch::autograd::Edge> roots, leaves;
    std::vector<at::Tensor> gradients;
  };
  std::vector<Group> groups_;
};

}  // namespace sibyl::trainer

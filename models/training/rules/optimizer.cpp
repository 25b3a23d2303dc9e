// The update of one parameter p from its gradient g. Reads p, g and the state; writes p and the state.
//   sgd       p -= lr g                                          2 FLOPs an element
//   momentum  m = mu m + g; p -= lr m                            4, one state
//   adam      m, v = moving averages of g, g^2; p -= lr m^/(sqrt v^ + eps)   12, two states
//   adamw     the same after p *= 1 - lr wd                      13
//   lamb      u = m^/(sqrt v^ + eps) + wd p; p -= lr |p|/|u| u: adam, decay, two norms, 18; p and u are read once more
//   lars      m = mu m + lr ratio (g + wd p); p -= m, the ratio from two norms, 11; p and g are read once more
// On a GPU torch.optim runs a kernel over all parameters for each line of the formula (its foreach functions: momentum
// mul, add, add; adam lerp, mul, addcmul, sqrt, div, add, addcdiv; adamw mul before them) unless the update is fused;
// what these read and write of p's size is counted below. Where it is `written` in a framework's own operators
// (Google's AdamWeightDecayOptimizer for TensorFlow 1: 15 kernels with decay), each reads its operands and writes a new
// tensor. lamb and lars, which torch.optim lacks, are apex's, fused. Weight decay (all but adamw, lamb and lars, which
// have it built in) adds wd p to g: 2.
#include "models/training/rules/rules.h"

namespace sibyl::rules {

TrainingRule rule(const OptimizerUpdate& op, const Context& c) {
  double flops = 2, states = 0, again = 0;  // again: tensors that norms read, and the update after them
  switch (op.kind) {
    case OptimizerKind::sgd: break;
    case OptimizerKind::momentum: flops = 4, states = 1; break;
    case OptimizerKind::adam: flops = 12, states = 2; break;
    case OptimizerKind::adamw: flops = 13, states = 2; break;
    case OptimizerKind::lamb: flops = 18, states = 2, again = 2; break;
    case OptimizerKind::lars: flops = 11, states = 1, again = 2; break;
  }
  const bool decays = op.kind == OptimizerKind::adamw || op.kind == OptimizerKind::lamb || op.kind == OptimizerKind::lars;
  if (op.weight_decay && !decays) flops += 2;
  const double p = c.in(0), bytes = p * c.element();
  double read = 2 + states + again, written = 1 + states;
  if (c.backend == Backend::cuda && !op.fused) {
    if (op.kind == OptimizerKind::sgd && op.written) read = 3, written = 2;
    if (op.kind == OptimizerKind::momentum) read = op.written ? 6 : 5, written = op.written ? 4 : 3;
    if (op.kind == OptimizerKind::adam) read = op.written ? 16 : 11, written = op.written ? 12 : 7;
    if (op.kind == OptimizerKind::adamw) read = op.written ? 19 : 12, written = op.written ? 14 : 8;
  }
  TrainingRule r;
  r.forward = work(flops * p, read * bytes, written * bytes);
  return r;
}

}  // namespace sibyl::rules

// The update of one parameter p from its gradient g. Reads p, g and the state; writes p and the state.
//   sgd       p -= lr g                                          2 FLOPs an element
//   momentum  m = mu m + g; p -= lr m                            4, one state
//   adam      m, v = moving averages of g, g^2; p -= lr m^/(sqrt v^ + eps)   12, two states
//   adamw     the same after p *= 1 - lr wd                      13
// Weight decay (all but adamw, which has it built in) adds wd p to g: 2.
#include "models/training/rules/rules.h"

namespace sibyl::rules {

TrainingRule rule(const OptimizerUpdate& op, const Context& c) {
  double flops = 2, states = 0;
  switch (op.kind) {
    case OptimizerKind::sgd: break;
    case OptimizerKind::momentum: flops = 4, states = 1; break;
    case OptimizerKind::adam: flops = 12, states = 2; break;
    case OptimizerKind::adamw: flops = 13, states = 2; break;
  }
  if (op.weight_decay && op.kind != OptimizerKind::adamw) flops += 2;
  const double p = c.in(0), bytes = p * c.element();
  TrainingRule r;
  r.forward = work(flops * p, (2 + states) * bytes, (1 + states) * bytes);
  return r;
}

}  // namespace sibyl::rules

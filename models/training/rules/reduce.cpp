// Reductions and softmax.
//
// Softmax: 5 FLOPs an element (maximum, subtract, exponentiate, sum, divide); backward y (dy - sum(y dy)) 4, from its
// result. Reduce: 1 an element. A sum's gradient is dy broadcast and written out (aten/operations/contiguous.h); a
// mean's is scaled by 1/n, too. libtorch 1.13 keeps a mean's operand, though only for its size; PyTorch 2.x does not.
#include "models/training/rules/rules.h"

namespace sibyl::rules {

TrainingRule rule(const Softmax&, const Context& c) {
  const double e = c.element(), x = c.in(0);
  TrainingRule r;
  r.forward = work(5 * x, x * e, x * e);
  r.backward = work(4 * x, 2 * x * e, x * e);
  r.saved = {saved_output()};
  return r;
}

TrainingRule rule(const Reduce& op, const Context& c) {
  const double e = c.element(), x = c.in(0), y = c.out();
  const bool position = op.kind == ReduceKind::argmax || op.kind == ReduceKind::argmin;
  TrainingRule r;
  r.forward = work(op.kind == ReduceKind::mean ? x + y : x, x * e, y * (position ? index_bytes : e));
  switch (op.kind) {
    case ReduceKind::argmax:
    case ReduceKind::argmin: break;
    case ReduceKind::sum: r.backward = work(0, y * e, x * e); break;
    case ReduceKind::mean:
      r.backward = work(x, y * e, x * e);
      if (c.cpu()) r.saved = {saved_input(0)};
      break;
    case ReduceKind::max:
    case ReduceKind::min:
    case ReduceKind::prod:
    case ReduceKind::l1:
    case ReduceKind::l2:  // the derivative compares or divides x by the result
      r.backward = work(2 * x, (x + 2 * y) * e, x * e);
      r.saved = {saved_input(0), saved_output()};
      break;
  }
  return r;
}

}  // namespace sibyl::rules

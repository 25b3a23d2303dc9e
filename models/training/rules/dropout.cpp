// y = x noise. The CPU draws noise of x's own type (0 or 1/(1-p)) and multiplies; CUDA's kernel keeps a bool mask. With ratio 0 the
// framework returns x. 2 FLOPs an element: compare the random number, scale.
#include "models/training/rules/rules.h"

namespace sibyl::rules {

TrainingRule rule(const Dropout& op, const Context& c) {
  TrainingRule r;
  if (op.ratio <= 0) {
    r.view = true;
    return r;
  }
  const double e = c.element(), x = c.in(0), mask = c.cpu() ? e : mask_bytes;
  // The CPU writes the noise in one kernel and reads it in the next.
  r.forward = work(2 * x, x * e + (c.cpu() ? x * mask : 0), x * e + x * mask);
  r.backward = work(x, x * e + x * mask, x * e);
  r.saved = {saved_extra(x * mask)};
  return r;
}

}  // namespace sibyl::rules

// One comparison or addition per tap. Max keeps x and the int64 position of each maximum; average keeps x, except over the whole
// extent, which PyTorch runs as a mean (see reduce.cpp).
#include "models/training/rules/rules.h"

namespace sibyl::rules {

TrainingRule rule(const Pool& op, const Context& c) {
  const double e = c.element(), x = c.in(0), y = c.out();
  double taps = 1;
  for (const std::int64_t extent : op.kernel) taps *= static_cast<double>(extent);
  const double visits = op.global ? x : y * taps;

  TrainingRule r;
  if (op.kind == PoolKind::max) {
    r.forward = work(visits, x * e, y * (e + index_bytes));
    r.backward = work(y, y * (e + index_bytes), x * e);
    r.saved = {saved_input(0), saved_extra(y * index_bytes)};
  } else {
    r.forward = work(visits + y, x * e, y * e);
    r.backward = work(visits, y * e, x * e);
    if (!op.global || c.cpu()) r.saved = {saved_input(0)};
  }
  if (op.pad_begin != op.pad_end) {  // a padded copy is pooled
    const double padded = padded_elements(c, op.pad_begin, op.pad_end) * e;
    r.forward = r.forward + work(0, x * e, padded);
    r.backward = r.backward + work(0, x * e, x * e);
    if (!r.saved.empty()) r.saved[0] = saved_extra(padded);
  }
  return r;
}

}  // namespace sibyl::rules

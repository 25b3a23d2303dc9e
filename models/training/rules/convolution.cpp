// y[n, k, p] = sum over the C/groups input channels and the kernel's taps. Forward: 2 x (results) x (C/groups) x (taps), and one
// addition for a bias. Each gradient is a convolution of the same size. Transposed: every *input* element meets K/groups x taps.
#include "models/training/rules/rules.h"

namespace sibyl::rules {

TrainingRule rule(const Convolution& op, const Context& c) {
  double taps = 1;
  for (const std::int64_t extent : op.kernel) taps *= static_cast<double>(extent);
  const double e = c.element(), x = c.in(0), w = c.in(1), y = c.out();
  // Elements of the weight that one output (transposed: one input) element of a group meets.
  const auto channels = static_cast<double>(c.input_shape(1).size() > 1 ? c.input_shape(1)[1] : 1);
  const double products = 2 * (op.transposed ? x : y) * channels * taps;

  TrainingRule r;
  r.forward = work(products + (c.has(2) ? y : 0), (x + w + c.in(2)) * e, y * e);
  if (c.wants(0)) r.backward = r.backward + work(products, (y + w) * e, x * e);
  if (c.wants(1)) r.backward = r.backward + work(products, (y + x) * e, w * e);
  if (c.wants(2)) r.backward = r.backward + work(y, y * e, c.in(2) * e);
  r.saved = {saved_input(0), saved_input(1)};  // one backward function for all three: it keeps both in every case
  if (op.pad_begin != op.pad_end && !op.transposed) {  // TensorFlow's SAME: a padded copy is convolved
    const double padded = padded_elements(c, op.pad_begin, op.pad_end) * e;
    r.forward = r.forward + work(0, x * e, padded);
    if (c.wants(0)) r.backward = r.backward + work(0, x * e, x * e);
    r.saved[0] = saved_extra(padded);
  }
  return r;
}

}  // namespace sibyl::rules

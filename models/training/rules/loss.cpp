// Losses, and AlexNet's local response normalisation: each several ATen calls.
//
// Cross-entropy is log-softmax (5 FLOPs an element, its result kept) and the negative log-likelihood of the targets; backward scatters
// -1/N into zeros of the logits' size, then log-softmax's dy - exp(y) sum(dy).
#include "models/training/rules/rules.h"

namespace sibyl::rules {

TrainingRule rule(const CrossEntropy&, const Context& c) {
  const double e = c.element(), x = c.in(0), n = c.in(1), targets = n * index_bytes;
  TrainingRule r;
  r.forward = work(5 * x, x * e, x * e) + work(n, n * e + targets, e);
  r.backward = work(0, e + targets, x * e) + work(4 * x, 2 * x * e, x * e);
  r.saved = {saved_extra(x * e), saved_input(1)};
  return r;
}

// Subtract, exponentiate in place, sum (3 FLOPs an element, the exponentials kept), and pick the targets; backward scales
// the exponentials and adds into the targets' places.
TrainingRule rule(const ClassStatistics&, const Context& c) {
  const double e = c.element(), x = c.in(0), n = c.in(1), targets = n * index_bytes;
  TrainingRule r;
  r.forward = work(2 * x, (x + n) * e, x * e) + work(x, x * e, n * e) + work(n, 2 * n * e + targets, n * e);
  r.backward = work(x, (x + n) * e, x * e) + work(n, n * e + targets, n * e);
  r.saved = {saved_extra(x * e), saved_input(1)};
  return r;
}

TrainingRule rule(const MeanSquaredError&, const Context& c) {
  const double e = c.element(), x = c.in(0);
  TrainingRule r;
  r.forward = work(3 * x, 2 * x * e, e);
  r.backward = work(2 * x, 2 * x * e + e, x * e);
  // The squares are formed in the result's own memory, which stays theirs when the mean shrinks it to a scalar.
  r.saved = {saved_input(0), saved_input(1), saved_extra(x * e)};
  return r;
}

// y = x / (k + alpha mean of x^2 over `size` channels)^beta, as PyTorch composes it: square, pad the channels, average, scale and
// shift, power, divide. Kept: x, the padded squares, the power's operand and its result.
TrainingRule rule(const LocalResponseNorm& op, const Context& c) {
  const double e = c.element(), x = c.in(0), size = static_cast<double>(op.size);
  const Shape& shape = c.input_shape(0);
  const double channels = shape.size() > 1 ? static_cast<double>(shape[1]) : 1;
  const double padded = x / channels * (channels + size - 1);
  TrainingRule r;
  r.forward = work(x, x * e, x * e) + work(0, x * e, padded * e) + work(size * x, padded * e, x * e) +
              work(2 * x, x * e, x * e) + work(x, x * e, x * e) + work(x, 2 * x * e, x * e);
  r.backward = work(5 * x, 3 * x * e, 2 * x * e) + work(3 * x, 2 * x * e, x * e) + work(x, x * e, x * e) +
               work(size * x, x * e, padded * e) + work(0, x * e, x * e) + work(2 * x, 2 * x * e, x * e);
  r.saved = {saved_input(0), saved_extra(padded * e), saved_extra(x * e), saved_extra(x * e)};
  return r;
}

}  // namespace sibyl::rules

// Matrix products. y[M, N] = a[M, K] b[K, N]: 2 M N K FLOPs; each gradient is a product of the same size, and keeps the
// *other* operand.
#include "models/training/rules/rules.h"

namespace sibyl::rules {
namespace {

TrainingRule product(const Context& c, double flops) {
  const double e = c.element(), a = c.in(0), b = c.in(1), y = c.out();
  TrainingRule r;
  r.forward = work(flops, (a + b) * e, y * e);
  if (c.wants(0)) r.backward = r.backward + work(flops, (y + b) * e, a * e);
  if (c.wants(1)) r.backward = r.backward + work(flops, (y + a) * e, b * e);
  if (c.wants(1)) r.saved.push_back(saved_input(0));
  if (c.wants(0)) r.saved.push_back(saved_input(1));
  return r;
}

}  // namespace

TrainingRule rule(const Linear&, const Context& c) {
  const double e = c.element(), y = c.out();
  TrainingRule r = product(c, 2 * y * last_extent(c.input_shape(0)));
  if (c.has(2)) r.forward = r.forward + work(y, c.in(2) * e, 0);  // the bias joins in the product's epilogue
  if (c.wants(2)) r.backward = r.backward + work(y, y * e, c.in(2) * e);
  return r;
}

TrainingRule rule(const MatMul&, const Context& c) { return product(c, 2 * c.out() * last_extent(c.input_shape(0))); }

}  // namespace sibyl::rules

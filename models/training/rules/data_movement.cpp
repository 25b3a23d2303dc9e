// Operations that move or resample elements. They keep at most the indices they followed.
#include <cmath>

#include "models/training/rules/rules.h"

namespace sibyl::rules {

// Both are copies in both passes: strided views would be copied by whoever reads them next (aten/operations/contiguous.h).
TrainingRule rule(const Concat&, const Context& c) {
  TrainingRule r;
  r.forward = work(0, c.out() * c.element(), c.out() * c.element());
  r.backward = r.forward;
  return r;
}
TrainingRule rule(const Transpose&, const Context& c) {
  TrainingRule r;
  r.forward = work(0, c.in(0) * c.element(), c.out() * c.element());
  r.backward = r.forward;
  return r;
}

// Backward adds the rows of dy into zeros of x's size.
TrainingRule rule(const Gather&, const Context& c) {
  const double e = c.element(), indices = c.in(1) * index_bytes, y = c.out();
  TrainingRule r;
  r.forward = work(0, y * e + indices, y * e);
  r.backward = work(y, y * e + indices, c.in(0) * e);
  r.saved = {saved_input(1)};
  return r;
}

TrainingRule rule(const Pad&, const Context& c) {
  const double e = c.element(), x = c.in(0);
  TrainingRule r;
  r.forward = work(0, x * e, c.out() * e);
  r.backward = work(0, x * e, x * e);
  return r;
}

// nearest copies; linear weighs 2 neighbours per spatial dimension, cubic 4 (a multiply-add each).
TrainingRule rule(const Resize& op, const Context& c) {
  const double e = c.element(), x = c.in(0), y = c.out();
  const double spatial = std::max(0.0, static_cast<double>(c.output_shape().size()) - 2);
  const double neighbours = op.kind == ResizeKind::nearest ? 0.0 : std::pow(op.kind == ResizeKind::linear ? 2 : 4, spatial);
  TrainingRule r;
  r.forward = work(2 * neighbours * y, x * e, y * e);
  r.backward = work(std::max(1.0, 2 * neighbours) * y, y * e, x * e);
  return r;
}

TrainingRule rule(const Cast& op, const Context& c) {
  const double from = c.element(), to = size_in_bytes(op.to), x = c.in(0);
  TrainingRule r;
  r.view = op.to == c.signature.dtype;
  if (r.view) return r;
  r.forward = work(0, x * from, x * to);
  r.backward = work(0, x * to, x * from);
  return r;
}

// Backward hands dy on.
TrainingRule rule(const Copy&, const Context& c) {
  TrainingRule r;
  r.forward = work(0, c.in(0) * c.element(), c.in(0) * c.element());
  return r;
}

}  // namespace sibyl::rules

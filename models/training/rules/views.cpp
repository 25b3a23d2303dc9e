// Results that share their operand's memory. Backward of a reshape is one too; a slice's gradient is written into zeros
// of x's size, a split's are concatenated, an expansion's summed.
#include "models/training/rules/rules.h"

namespace sibyl::rules {
namespace {

TrainingRule view() {
  TrainingRule r;
  r.view = true;
  return r;
}

}  // namespace

TrainingRule rule(const Reshape&, const Context&) { return view(); }

TrainingRule rule(const Slice&, const Context& c) {
  TrainingRule r = view();
  r.backward = work(0, c.out() * c.element(), c.in(0) * c.element());
  return r;
}

TrainingRule rule(const Split&, const Context& c) {
  TrainingRule r = view();
  r.backward = work(0, c.in(0) * c.element(), c.in(0) * c.element());
  return r;
}

TrainingRule rule(const Expand&, const Context& c) {
  TrainingRule r = view();
  if (c.in(0) < c.out()) r.backward = work(c.out(), c.out() * c.element(), c.in(0) * c.element());
  return r;
}

}  // namespace sibyl::rules

// y[i] = table[ids[i]]: reads the rows used. The gradient is dense: the whole table is zeroed and the rows of dy added into it.
// Of a partial table the rows of ids that are elsewhere are zeroed afterwards.
#include "models/training/rules/rules.h"

namespace sibyl::rules {

TrainingRule rule(const Embedding& op, const Context& c) {
  const double e = c.element(), ids = c.in(1) * index_bytes, y = c.out();
  TrainingRule r;
  r.forward = work(0, y * e + ids, y * e);
  if (op.partial) r.forward = r.forward + work(0, y * e + ids, y * e);
  r.backward = work(y, y * e + ids, c.in(0) * e);
  r.saved = {saved_input(1)};
  if (c.cpu() && !op.partial) r.saved.push_back(saved_input(0));  // libtorch 1.13, for its size
  return r;
}

}  // namespace sibyl::rules

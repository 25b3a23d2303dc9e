// y = dropout(softmax(scale q k^T + mask)) v. Two products of 2 B H S T D FLOPs forward. FLOPs count the whole S x T
// square, causal or not, as published counts do (a flash kernel skips the blocks above the diagonal).
//
// CPU (libtorch 1.13): composed of ATen calls, as aten/operations/attention.cpp does. Autograd keeps the scaled q, k
// and v (repeated to all heads where queries are grouped), the probabilities, and with dropout its noise and what it
// leaves. Four products backward: dV, dP, dQ, dK. CUDA (PyTorch 2.x): one flash or memory-efficient kernel keeps q, k,
// v, y and the log-sum-exp of each row (f32), and recomputes the scores backward: five products (Dao, FlashAttention-2,
// 2023, section 3). So does attention in a ring on either, whose keys are those of all its ranks.
#include "models/training/rules/rules.h"

namespace sibyl::rules {
namespace {

struct Sizes {
  double q = 0, kv = 0;  // elements of q; of k or v once repeated to H heads
  double scores = 0, square = 0, rows = 0, product = 0;
};

Sizes sizes(const Attention& op, const Context& c) {
  const Shape& q = c.input_shape(0);
  const Shape& k = c.input_shape(1);
  if (q.size() != 4 || k.size() != 4) return {};
  const auto heads = static_cast<double>(q[0] * q[1]);
  const auto s = static_cast<double>(q[2]), t = static_cast<double>(k[2] * op.ring), d = static_cast<double>(q[3]);
  return {heads * s * d, heads * t * d, heads * s * t, s * t, heads * s, 2 * heads * s * t * d};
}

TrainingRule composed(const Attention& op, const Context& c, const Sizes& n) {
  const double e = c.element(), y = c.out();
  const bool scaled = op.scale != 1.0, repeated = c.in(1) < n.kv;
  TrainingRule r;
  r.forward = work(n.product, (n.q + n.kv) * e, n.scores * e) +                         // q k^T
              work(5 * n.scores, n.scores * e, n.scores * e) +                          // softmax
              work(n.product, (n.scores + n.kv) * e, y * e);                            // p v
  r.backward = work(n.product, (y + n.kv) * e, n.scores * e) +                          // dP
               work(n.product, (y + n.scores) * e, n.kv * e) +                          // dV
               work(4 * n.scores, 2 * n.scores * e, n.scores * e) +                     // softmax
               work(n.product, (n.scores + n.kv) * e, n.q * e) +                        // dQ
               work(n.product, (n.scores + n.q) * e, n.kv * e);                         // dK
  if (scaled) r.forward = r.forward + work(n.q, n.q * e, n.q * e), r.backward = r.backward + work(n.q, n.q * e, n.q * e);
  if (op.causal) r.forward = r.forward + work(n.scores, n.scores * e + n.square * mask_bytes, n.scores * e);
  if (c.has(3)) r.forward = r.forward + work(n.scores, (n.scores + c.in(3)) * e, n.scores * e);
  if (c.wants(3)) r.backward = r.backward + work(n.scores, n.scores * e, c.in(3) * e);
  if (repeated) {
    r.forward = r.forward + work(0, (c.in(1) + c.in(2)) * e, 2 * n.kv * e);
    r.backward = r.backward + work(2 * n.kv, 2 * n.kv * e, (c.in(1) + c.in(2)) * e);
  }
  r.saved = {scaled ? saved_extra(n.q * e) : saved_input(0), repeated ? saved_extra(n.kv * e) : saved_input(1),
             repeated ? saved_extra(n.kv * e) : saved_input(2), saved_extra(n.scores * e)};
  if (op.dropout > 0) {
    r.forward = r.forward + work(2 * n.scores, n.scores * e, 2 * n.scores * e);
    r.backward = r.backward + work(n.scores, 2 * n.scores * e, n.scores * e);
    r.saved.push_back(saved_extra(n.scores * e));  // noise
    r.saved.push_back(saved_extra(n.scores * e));  // probabilities after dropout
  }
  return r;
}

TrainingRule flash(const Attention& op, const Context& c, const Sizes& n) {
  const double e = c.element(), y = c.out();
  const double operands = (c.in(0) + (c.in(1) + c.in(2)) * static_cast<double>(op.ring)) * e;
  const double statistics = n.rows * c.statistic();
  TrainingRule r;
  r.forward = work(2 * n.product + 5 * n.scores, operands + c.in(3) * e, y * e + statistics);
  r.backward = work(5 * n.product + 5 * n.scores, operands + 2 * y * e + statistics + c.in(3) * e, operands);
  if (c.wants(3)) {  // of a learned bias: the kernel writes the gradient of all scores, which is summed to its shape
    r.backward = r.backward + work(0, 0, n.scores * e);
    if (c.in(3) < n.scores) r.backward = r.backward + work(n.scores, n.scores * e, c.in(3) * e);
  }
  r.saved = {saved_input(0), saved_input(1), saved_input(2), saved_output(), saved_extra(statistics)};
  if (c.has(3)) r.saved.push_back(saved_input(3));
  return r;
}

}  // namespace

TrainingRule rule(const Attention& op, const Context& c) {
  return c.cpu() && op.ring == 1 ? composed(op, c, sizes(op, c)) : flash(op, c, sizes(op, c));
}

}  // namespace sibyl::rules

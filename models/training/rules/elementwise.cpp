// Functions of one element, of two with broadcasting, and selection.
//
// A broadcast operand's gradient is a sum over the broadcast extents: of dy itself where that is the gradient of every
// element (add), else of a tensor of the result's size, which is written and read for it (autograd's sum_to_size behind
// its product, TensorFlow's Sum behind its Mul, the collector of prelu's slopes).
#include <array>

#include "models/training/rules/rules.h"

namespace sibyl::rules {
namespace {

enum class Keeps { nothing, input, output };

// FLOPs an element in each pass, and what PyTorch's derivative is written in.
struct UnaryRow {
  UnaryKind kind;
  double forward, backward;
  Keeps keeps;
};

constexpr auto unary_rows = std::to_array<UnaryRow>({
    {UnaryKind::relu, 1, 1, Keeps::output},          // dy where y > 0
    {UnaryKind::leaky_relu, 2, 2, Keeps::input},
    {UnaryKind::prelu, 2, 2, Keeps::input},
    {UnaryKind::elu, 3, 3, Keeps::input},
    {UnaryKind::gelu, 5, 11, Keeps::input},          // x/2 (1 + erf(x/sqrt 2)); dy (cdf + x pdf)
    {UnaryKind::gelu_tanh, 9, 16, Keeps::input},
    {UnaryKind::silu, 4, 9, Keeps::input},           // x / (1 + exp(-x))
    {UnaryKind::hard_swish, 5, 4, Keeps::input},
    {UnaryKind::hard_sigmoid, 4, 3, Keeps::input},
    {UnaryKind::sigmoid, 4, 3, Keeps::output},       // dy y (1 - y)
    {UnaryKind::tanh, 1, 3, Keeps::output},          // dy (1 - y y)
    {UnaryKind::softplus, 3, 4, Keeps::input},
    {UnaryKind::mish, 5, 12, Keeps::input},
    {UnaryKind::clip, 2, 3, Keeps::input},
    {UnaryKind::erf, 1, 5, Keeps::input},
    {UnaryKind::exp, 1, 1, Keeps::output},
    {UnaryKind::log, 1, 1, Keeps::input},
    {UnaryKind::sqrt, 1, 2, Keeps::output},
    {UnaryKind::rsqrt, 1, 4, Keeps::output},
    {UnaryKind::reciprocal, 1, 3, Keeps::output},
    {UnaryKind::pow, 1, 3, Keeps::input},
    {UnaryKind::abs, 1, 2, Keeps::input},
    {UnaryKind::neg, 1, 1, Keeps::nothing},
    {UnaryKind::sin, 1, 2, Keeps::input},
    {UnaryKind::cos, 1, 3, Keeps::input},
    {UnaryKind::floor, 1, 0, Keeps::nothing},        // piecewise constant: the gradient is zeros
    {UnaryKind::ceil, 1, 0, Keeps::nothing},
    {UnaryKind::round, 1, 0, Keeps::nothing},
    {UnaryKind::sign, 1, 0, Keeps::nothing},
    {UnaryKind::logical_not, 1, 0, Keeps::nothing},
    {UnaryKind::scale_shift, 2, 1, Keeps::nothing},  // dy alpha
});

constexpr bool rows_in_order() {
  for (std::size_t i = 0; i < unary_rows.size(); ++i)
    if (static_cast<std::size_t>(unary_rows[i].kind) != i) return false;
  return unary_rows.size() == enum_names(UnaryKind{}).size();
}
static_assert(rows_in_order(), "one row per UnaryKind, in its order");

bool is_predicate(BinaryKind kind) { return kind >= BinaryKind::equal; }
bool is_logical(BinaryKind kind) { return kind == BinaryKind::logical_and || kind == BinaryKind::logical_or; }

void add_once(std::vector<Saved>& saved, const Saved& one) {
  if (std::find(saved.begin(), saved.end(), one) == saved.end()) saved.push_back(one);
}

// What computing the gradient of operand i needs: of operand 0, operand 1, and the result.
struct Needs {
  bool a = false, b = false, y = false;
};

Needs needs(BinaryKind kind, std::size_t i) {
  switch (kind) {
    case BinaryKind::mul: return {i == 1, i == 0, false};
    case BinaryKind::div: return {i == 1, true, false};          // dy / b;  -dy (a/b)/b
    case BinaryKind::pow: return {true, true, i == 1};           // dy b a^(b-1);  dy y ln a
    case BinaryKind::min:
    case BinaryKind::max: return {true, true, false};
    case BinaryKind::mod: return {i == 1, i == 1, false};
    default: return {};
  }
}

double gradient_flops(BinaryKind kind, std::size_t i) {
  switch (kind) {
    case BinaryKind::add: return 0;
    case BinaryKind::sub: return i == 0 ? 0 : 1;
    case BinaryKind::mul: return 1;
    case BinaryKind::div: return i == 0 ? 1 : 4;
    case BinaryKind::pow: return 3;
    case BinaryKind::min:
    case BinaryKind::max: return 2;
    case BinaryKind::mod: return i == 0 ? 0 : 3;
    default: return 0;
  }
}

}  // namespace

TrainingRule rule(const Unary& op, const Context& c) {
  const UnaryRow& row = unary_rows[static_cast<std::size_t>(op.kind)];
  const double e = op.kind == UnaryKind::logical_not ? mask_bytes : c.element(), x = c.in(0);
  TrainingRule r;
  r.forward = work(row.forward * x, (x + c.in(1)) * e, x * e);
  const double kept = row.keeps == Keeps::nothing ? 0 : x;
  const double dy = row.backward > 0 ? x : 0;  // zeros need no dy
  const double slopes = c.wants(1) ? x : 0;    // before they are added up
  r.backward = work(row.backward * x, (dy + kept + c.in(1) + slopes) * e,
                    ((c.wants(0) ? x : 0) + (c.wants(1) ? slopes + c.in(1) : 0)) * e);
  if (row.keeps == Keeps::input) r.saved = {saved_input(0)};
  if (row.keeps == Keeps::output) r.saved = {saved_output()};
  if (c.has(1)) r.saved.push_back(saved_input(1));  // prelu's slope
  return r;
}

TrainingRule rule(const Binary& op, const Context& c) {
  const double e = c.element(), y = c.out();
  const double operand = is_logical(op.kind) ? mask_bytes : e, result = is_predicate(op.kind) ? mask_bytes : e;
  TrainingRule r;
  r.forward = work(y, (c.in(0) + c.in(1)) * operand, y * result);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!c.wants(i)) continue;
    const Needs n = needs(op.kind, i);
    if (n.a) add_once(r.saved, saved_input(0));
    if (n.b) add_once(r.saved, saved_input(1));
    if (n.y) add_once(r.saved, saved_output());
    const bool broadcast = c.in(i) < y;
    const double flops = (gradient_flops(op.kind, i) + (broadcast ? 1 : 0)) * y;
    if (flops == 0) continue;  // dy itself is the gradient
    const double summed = broadcast && gradient_flops(op.kind, i) > 0 ? y : 0;
    const double read = y + (n.a ? c.in(0) : 0) + (n.b ? c.in(1) : 0) + (n.y ? y : 0) + summed;
    r.backward = r.backward + work(flops, read * e, (c.in(i) + summed) * e);
  }
  return r;
}

TrainingRule rule(const Where&, const Context& c) {
  const double e = c.element(), y = c.out();
  TrainingRule r;
  r.forward = work(y, c.in(0) * mask_bytes + (c.in(1) + c.in(2)) * e, y * e);
  for (std::size_t i = 1; i < 3; ++i)
    if (c.wants(i)) {
      const double flops = c.in(i) < y ? 2 * y : y;
      r.backward = r.backward + work(flops, c.in(0) * mask_bytes + y * e, c.in(i) * e);
    }
  r.saved = {saved_input(0)};
  return r;
}

}  // namespace sibyl::rules

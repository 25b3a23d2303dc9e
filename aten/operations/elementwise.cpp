#include <cmath>

#include "aten/dtype.h"
#include "aten/operations/families.h"

namespace sibyl::aten {
namespace {

// A ReLU6 exports as clip(0, 6) and runs as hardtanh.
at::Tensor clip(const at::Tensor& x, double low, double high) {
  if (std::isfinite(low) && std::isfinite(high) && at::isFloatingType(x.scalar_type()))
    return at::hardtanh(x, low, high);
  if (std::isfinite(low)) return std::isfinite(high) ? at::clamp(x, low, high) : at::clamp_min(x, low);
  return std::isfinite(high) ? at::clamp_max(x, high) : x;
}

at::Tensor scale_shift(const at::Tensor& x, double alpha, double beta) {
  if (beta == 0.0) return x * alpha;
  if (alpha == 1.0) return x + beta;
  return x * alpha + beta;
}

at::Tensor prelu(const Unary& op, const Tensors& in) {
  if (in.size() < 2 || !in[1].defined()) return at::leaky_relu(in.at(0), op.alpha);
  return at::prelu(in[0], in[1].reshape({-1}));  // files store the slopes as [C, 1, 1]
}

at::Tensor hard_sigmoid(const Unary& op, const at::Tensor& x) {
  const bool as_torch = op.alpha == 0.0 || (std::abs(op.alpha - 1.0 / 6.0) < 1e-6 && std::abs(op.beta - 0.5) < 1e-6);
  return as_torch ? at::hardsigmoid(x) : at::hardtanh(scale_shift(x, op.alpha, op.beta), 0.0, 1.0);
}

}  // namespace

at::Tensor run(const Unary& op, const Tensors& in) {
  const at::Tensor& x = in.at(0);
  switch (op.kind) {
    case UnaryKind::relu: return at::relu(x);
    case UnaryKind::leaky_relu: return at::leaky_relu(x, op.alpha);
    case UnaryKind::prelu: return prelu(op, in);
    case UnaryKind::elu: return at::elu(x, op.alpha);
    case UnaryKind::gelu: return at::gelu(x, "none");
    case UnaryKind::gelu_tanh: return at::gelu(x, "tanh");
    case UnaryKind::silu: return at::silu(x);
    case UnaryKind::hard_swish: return at::hardswish(x);
    case UnaryKind::hard_sigmoid: return hard_sigmoid(op, x);
    case UnaryKind::sigmoid: return at::sigmoid(x);
    case UnaryKind::tanh: return at::tanh(x);
    case UnaryKind::softplus: return at::softplus(x);
    case UnaryKind::mish: return at::mish(x);
    case UnaryKind::clip: return clip(x, op.alpha, op.beta);
    case UnaryKind::erf: return at::erf(x);
    case UnaryKind::exp: return at::exp(x);
    case UnaryKind::log: return at::log(x);
    case UnaryKind::sqrt: return at::sqrt(x);
    case UnaryKind::rsqrt: return at::rsqrt(x);
    case UnaryKind::reciprocal: return at::reciprocal(x);
    case UnaryKind::pow: return at::pow(x, op.alpha);
    case UnaryKind::abs: return at::abs(x);
    case UnaryKind::neg: return at::neg(x);
    case UnaryKind::sin: return at::sin(x);
    case UnaryKind::cos: return at::cos(x);
    case UnaryKind::floor: return at::floor(x);
    case UnaryKind::ceil: return at::ceil(x);
    case UnaryKind::round: return at::round(x);
    case UnaryKind::sign: return at::sign(x);
    case UnaryKind::logical_not: return at::logical_not(x);
    case UnaryKind::scale_shift: break;
  }
  return scale_shift(x, op.alpha, op.beta);
}

at::Tensor run(const Binary& op, const Tensors& in) {
  const at::Tensor& a = in.at(0);
  const at::Tensor& b = in.at(1);
  const bool integral = !at::isFloatingType(a.scalar_type()) && !at::isFloatingType(b.scalar_type());
  switch (op.kind) {
    case BinaryKind::add: return a + b;
    case BinaryKind::sub: return a - b;
    case BinaryKind::mul: return a * b;
    case BinaryKind::div: return integral ? at::div(a, b, "trunc") : at::div(a, b);
    case BinaryKind::pow: return at::pow(a, b);
    case BinaryKind::min: return at::minimum(a, b);
    case BinaryKind::max: return at::maximum(a, b);
    case BinaryKind::mod: return at::remainder(a, b);
    case BinaryKind::equal: return at::eq(a, b);
    case BinaryKind::less: return at::lt(a, b);
    case BinaryKind::less_equal: return at::le(a, b);
    case BinaryKind::greater: return at::gt(a, b);
    case BinaryKind::greater_equal: return at::ge(a, b);
    case BinaryKind::logical_and: return at::logical_and(a, b);
    case BinaryKind::logical_or: break;
  }
  return at::logical_or(a, b);
}

at::Tensor run(const Where&, const Tensors& in) { return at::where(in.at(0).to(at::kBool), in.at(1), in.at(2)); }

at::Tensor run(const Cast& op, const Tensors& in) { return in.at(0).to(scalar_type(op.to)); }

at::Tensor run(const Copy&, const Tensors& in) { return in.at(0).clone(at::MemoryFormat::Contiguous); }

}  // namespace sibyl::aten

#include "profiler/interpolation/cost_key.h"

#include <type_traits>

namespace sibyl::interpolation {
namespace {

void neutralise(Attention& op) {
  op.scale = 1.0;
  op.dropout = op.dropout > 0.0 ? 0.1 : 0.0;  // whether a mask is drawn matters, its ratio does not
}
void neutralise(Normalization& op) {
  op.epsilon = 1e-5;
  op.momentum = 0.1;
}
void neutralise(Unary& op) {
  if (op.kind == UnaryKind::pow) return;  // the exponent chooses the code
  if (op.kind == UnaryKind::scale_shift) {
    op.alpha = op.alpha == 1.0 ? 1.0 : 2.0;
    op.beta = op.beta == 0.0 ? 0.0 : 1.0;
    return;
  }
  op.alpha = op.beta = 0.0;
}
void neutralise(Dropout& op) { op.ratio = 0.5; }
void neutralise(LocalResponseNorm& op) {
  op.alpha = 1e-4;
  op.beta = 0.75;
  op.k = 1.0;
}
void neutralise(ApplyNorm& op) { op = ApplyNorm{.groups = op.groups}; }
void neutralise(auto&) {}

Shape flat(const Shape& shape) { return {element_count(shape)}; }

// [a, b, K] -> [a*b, K]
Shape rows_of_last(const Shape& shape) {
  if (shape.empty() || shape.back() == 0) return shape;
  return {element_count(shape) / shape.back(), shape.back()};
}

void flatten_elementwise(Signature& signature) {
  for (const Shape& shape : signature.inputs)
    if (shape != signature.inputs.front()) return;
  for (const Shape& shape : signature.outputs)
    if (shape != signature.inputs.front()) return;
  for (auto* shapes : {&signature.inputs, &signature.outputs})
    for (Shape& shape : *shapes) shape = flat(shape);
}

}  // namespace

bool one_kernel_per_gradient(const Attributes& attributes) {
  return is_any<Convolution, Linear, MatMul, GroupedLinear>(attributes);
}

KernelKey cost_key(KernelKey key) {
  Signature& signature = key.signature;
  std::visit([](auto& op) { neutralise(op); }, signature.attributes);
  if (is_any<Linear>(signature.attributes) && !signature.inputs.empty() && !signature.outputs.empty()) {
    signature.inputs.front() = rows_of_last(signature.inputs.front());
    signature.outputs.front() = rows_of_last(signature.outputs.front());
  }
  if (is_any<Unary, Binary, Dropout, Cast, Copy, OptimizerUpdate>(signature.attributes)) flatten_elementwise(signature);
  if (is_any<Convolution, Linear, GroupedLinear>(signature.attributes) && key.pass == Pass::backward &&
      (key.gradients >> 2U) == 0 && signature.inputs.size() == 3)
    signature.inputs.pop_back();  // a bias whose gradient is not computed has no part in backward
  return key;
}

KernelKey with_gradients(KernelKey key, std::uint32_t mask) {
  key.gradients = mask;
  return cost_key(std::move(key));
}

}  // namespace sibyl::interpolation

// Elementwise functions of one operand.
#include <limits>
#include <map>

#include "models/onnx/evaluate.h"
#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

Lowering unary(const Node& node, UnaryKind kind, double alpha = 0, double beta = 0) {
  Lowering lowering = single(node, Unary{kind, alpha, beta}, {0}, node.shape(0), node.dtype(0));
  lowering.outputs[0].values = apply(kind, alpha, beta, node.fact(0));
  return lowering;
}

// Functions without constants.
Result<Lowering> plain(const Node& node) {
  static const std::map<std::string_view, UnaryKind> kinds = {{"Relu", UnaryKind::relu},
                                                              {"HardSwish", UnaryKind::hard_swish},
                                                              {"Sigmoid", UnaryKind::sigmoid},
                                                              {"Tanh", UnaryKind::tanh},
                                                              {"Softplus", UnaryKind::softplus},
                                                              {"Mish", UnaryKind::mish},
                                                              {"Erf", UnaryKind::erf},
                                                              {"Exp", UnaryKind::exp},
                                                              {"Log", UnaryKind::log},
                                                              {"Sqrt", UnaryKind::sqrt},
                                                              {"Reciprocal", UnaryKind::reciprocal},
                                                              {"Abs", UnaryKind::abs},
                                                              {"Neg", UnaryKind::neg},
                                                              {"Sin", UnaryKind::sin},
                                                              {"Cos", UnaryKind::cos},
                                                              {"Floor", UnaryKind::floor},
                                                              {"Ceil", UnaryKind::ceil},
                                                              {"Round", UnaryKind::round},
                                                              {"Sign", UnaryKind::sign},
                                                              {"Not", UnaryKind::logical_not}};
  return unary(node, kinds.at(node.op_type()));
}

Result<Lowering> leaky_relu(const Node& node) { return unary(node, UnaryKind::leaky_relu, node.number("alpha", 0.01)); }

Result<Lowering> elu(const Node& node) { return unary(node, UnaryKind::elu, node.number("alpha", 1.0)); }

Result<Lowering> hard_sigmoid(const Node& node) {
  return unary(node, UnaryKind::hard_sigmoid, node.number("alpha", 0.2), node.number("beta", 0.5));
}

Result<Lowering> prelu(const Node& node) {
  SIBYL_TRY(const Shape shape, broadcast(node.shape(0), node.shape(1)));
  if (shape != node.shape(0))
    return fail("the slope " + to_string(node.shape(1)) + " does not broadcast to " + to_string(node.shape(0)));
  return single(node, Unary{UnaryKind::prelu}, {0, 1}, shape, node.dtype(0));
}

// alpha (exp(x / alpha) - 1) below zero, x above.
Result<Lowering> celu(const Node& node) {
  const double alpha = node.number("alpha", 1.0);
  if (alpha == 0.0) return fail("its alpha is 0");
  if (alpha == 1.0) return unary(node, UnaryKind::elu, 1.0);
  Steps steps(node);
  SIBYL_TRY(Operand x, steps.binary(BinaryKind::div, steps.input(0), steps.scalar(alpha, node.dtype(0))));
  x = steps.add(Unary{UnaryKind::elu, 1.0}, {x}, node.shape(0));
  SIBYL_TRY(x, steps.binary(BinaryKind::mul, x, steps.scalar(alpha, node.dtype(0))));
  return std::move(steps).result(x);
}

// alpha (exp(x) - 1) below zero, x above, all times gamma.
Result<Lowering> selu(const Node& node) {
  Steps steps(node);
  const Operand x = steps.add(Unary{UnaryKind::elu, node.number("alpha", 1.67326319217681884765625)}, {steps.input(0)},
                              node.shape(0));
  SIBYL_TRY(
      const Operand y,
      steps.binary(BinaryKind::mul, x, steps.scalar(node.number("gamma", 1.05070102214813232421875), node.dtype(0))));
  return std::move(steps).result(y);
}

// x / (1 + |x|)
Result<Lowering> softsign(const Node& node) {
  Steps steps(node);
  const Operand size = steps.add(Unary{UnaryKind::abs}, {steps.input(0)}, node.shape(0));
  SIBYL_TRY(const Operand sum, steps.binary(BinaryKind::add, size, steps.scalar(1.0, node.dtype(0))));
  SIBYL_TRY(const Operand y, steps.binary(BinaryKind::div, steps.input(0), sum));
  return std::move(steps).result(y);
}

// Limits in attributes before opset 11, in operands since. A limit that is computed does not occur in practice.
Result<Lowering> clip(const Node& node) {
  constexpr double most = 3.4028234663852886e38;
  double low = node.number("min", -most), high = node.number("max", most);
  if (node.has(1)) {
    const auto value = node.scalar(1);
    if (!value) return unsupported("its lower limit is not a constant scalar");
    low = *value;
  }
  if (node.has(2)) {
    const auto value = node.scalar(2);
    if (!value) return unsupported("its upper limit is not a constant scalar");
    high = *value;
  }
  if (low == 0.0 && high >= most) return unary(node, UnaryKind::relu);
  return unary(node, UnaryKind::clip, low, high);
}

Result<Lowering> gelu(const Node& node) {
  return unary(node, node.text("approximate", "none") == "tanh" ? UnaryKind::gelu_tanh : UnaryKind::gelu);
}

// com.microsoft's: with a bias added first.
Result<Lowering> gelu_of_sum(const Node& node) {
  Steps steps(node);
  Operand x = steps.input(0);
  if (node.has(1)) {
    SIBYL_TRY(x, steps.binary(BinaryKind::add, x, steps.input(1)));
  }
  const UnaryKind kind = node.op_type() == "FastGelu" ? UnaryKind::gelu_tanh : UnaryKind::gelu;
  return std::move(steps).result(steps.add(Unary{kind}, {x}, steps.fact(x).shape));
}

// x sigmoid(alpha x): SiLU where alpha is 1.
Result<Lowering> swish(const Node& node) {
  const double alpha = node.number("alpha", node.op_type() == "QuickGelu" ? 1.702 : 1.0);
  if (alpha == 1.0) return unary(node, UnaryKind::silu);
  Steps steps(node);
  SIBYL_TRY(const Operand scaled, steps.binary(BinaryKind::mul, steps.input(0), steps.scalar(alpha, node.dtype(0))));
  const Operand gate = steps.add(Unary{UnaryKind::sigmoid}, {scaled}, node.shape(0));
  SIBYL_TRY(const Operand y, steps.binary(BinaryKind::mul, steps.input(0), gate));
  return std::move(steps).result(y);
}

// What is no number is not equal to itself.
Result<Lowering> is_nan(const Node& node) {
  Steps steps(node);
  const Operand x = steps.input(0);
  const Operand equal = steps.add(Binary{BinaryKind::equal}, {x, x}, node.shape(0), DType::boolean);
  Lowering lowering = std::move(steps).result(steps.add(Unary{UnaryKind::logical_not}, {equal}, node.shape(0)));
  const Fact itself{DType::boolean, node.shape(0), apply(BinaryKind::equal, node.fact(0), node.fact(0), node.shape(0))};
  lowering.outputs[0].values = apply(UnaryKind::logical_not, 0, 0, itself);
  return lowering;
}

// |x| is infinite, or x itself where one sign alone is looked for.
Result<Lowering> is_inf(const Node& node) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool negative = node.integer("detect_negative", 1) != 0, positive = node.integer("detect_positive", 1) != 0;
  if (!negative && !positive) return constant({DType::boolean, node.shape(0), filled(node.shape(0), 0.0)});
  Steps steps(node);
  Operand x = steps.input(0);
  Fact fact = node.fact(0);
  if (negative && positive) {
    x = steps.add(Unary{UnaryKind::abs}, {x}, node.shape(0));
    fact.values = apply(UnaryKind::abs, 0, 0, fact);
  }
  const double limit = positive ? infinity : -infinity;
  const Operand y =
      steps.add(Binary{BinaryKind::equal}, {x, steps.scalar(limit, node.dtype(0))}, node.shape(0), DType::boolean);
  Lowering lowering = std::move(steps).result(y);
  lowering.outputs[0].values = apply(BinaryKind::equal, fact, {node.dtype(0), {}, filled({}, limit)}, node.shape(0));
  return lowering;
}

Result<Lowering> cast_to(const Node& node, DType to) {
  const bool weight_stays_weight =
      node.is_weight(0) && is_floating(to);  // mixed-precision exports cast their f32 weights
  if (to == node.dtype(0) || weight_stays_weight) return same_as(0, node);
  Lowering lowering = single(node, Cast{to}, {0}, node.shape(0), to);
  lowering.outputs[0].values = convert(node.fact(0), to);
  lowering.of_shapes = node.is_weight(0);  // a mask stored as floats
  return lowering;
}

Result<Lowering> cast(const Node& node) {
  constexpr std::pair<std::int64_t, DType> types[] = {
      {1, DType::f32},     {2, DType::u8},     {3, DType::i8},      {4, DType::i16},     {5, DType::i16},
      {6, DType::i32},     {7, DType::i64},    {9, DType::boolean}, {10, DType::f16},    {11, DType::f64},
      {12, DType::i32},    {13, DType::i64},   {16, DType::bf16},   {17, DType::f8e4m3}, {18, DType::f8e4m3},
      {19, DType::f8e5m2}, {20, DType::f8e5m2}};
  const std::int64_t to = node.integer("to", 0);
  for (const auto& [number, type] : types)
    if (number == to) return cast_to(node, type);
  return unsupported("a cast to element type " + std::to_string(to));
}

Result<Lowering> cast_like(const Node& node) { return cast_to(node, node.dtype(1)); }

}  // namespace

std::span<const Operator> unary_operators() {
  static constexpr Operator table[] = {
      {"Relu", plain},
      {"HardSwish", plain},
      {"Sigmoid", plain},
      {"Tanh", plain},
      {"Softplus", plain},
      {"Mish", plain},
      {"Erf", plain},
      {"Exp", plain},
      {"Log", plain},
      {"Sqrt", plain},
      {"Reciprocal", plain},
      {"Abs", plain},
      {"Neg", plain},
      {"Sin", plain},
      {"Cos", plain},
      {"Floor", plain},
      {"Ceil", plain},
      {"Round", plain},
      {"Sign", plain},
      {"Not", plain},
      {"IsNaN", is_nan},
      {"IsInf", is_inf},
      {"LeakyRelu", leaky_relu},
      {"Elu", elu},
      {"Selu", selu},
      {"Celu", celu},
      {"Softsign", softsign},
      {"HardSigmoid", hard_sigmoid},
      {"PRelu", prelu, 2},
      {"Clip", clip},
      {"Gelu", gelu},
      {"Swish", swish},
      {"Cast", cast},
      {"CastLike", cast_like, 2},
      {"Gelu", gelu_of_sum, 1, "com.microsoft"},
      {"FastGelu", gelu_of_sum, 1, "com.microsoft"},
      {"BiasGelu", gelu_of_sum, 2, "com.microsoft"},
      {"QuickGelu", swish, 1, "com.microsoft"},
  };
  return table;
}

}  // namespace sibyl::onnx_import

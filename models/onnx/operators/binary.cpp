// Elementwise functions of two and more operands, with numpy's broadcasting.
#include <map>

#include "models/onnx/evaluate.h"
#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

bool gives_booleans(BinaryKind kind) { return kind >= BinaryKind::equal; }

Result<Lowering> binary(const Node& node) {
  static const std::map<std::string_view, BinaryKind> kinds = {{"Add", BinaryKind::add},
                                                               {"Sub", BinaryKind::sub},
                                                               {"Mul", BinaryKind::mul},
                                                               {"Div", BinaryKind::div},
                                                               {"Pow", BinaryKind::pow},
                                                               {"Mod", BinaryKind::mod},
                                                               {"Equal", BinaryKind::equal},
                                                               {"Less", BinaryKind::less},
                                                               {"LessOrEqual", BinaryKind::less_equal},
                                                               {"Greater", BinaryKind::greater},
                                                               {"GreaterOrEqual", BinaryKind::greater_equal},
                                                               {"And", BinaryKind::logical_and},
                                                               {"Or", BinaryKind::logical_or}};
  const BinaryKind kind = kinds.at(node.op_type());
  SIBYL_TRY(Shape shape, broadcast(node.shape(0), node.shape(1)));
  Lowering lowering = single(node, Binary{kind}, {0, 1}, shape, gives_booleans(kind) ? DType::boolean : node.dtype(0));
  lowering.outputs[0].values = apply(kind, node.fact(0), node.fact(1), shape);
  return lowering;
}

// Sum, Mean, Max and Min take any number of operands.
Result<Lowering> variadic(const Node& node) {
  const std::string_view name = node.op_type();
  const BinaryKind kind = name == "Max" ? BinaryKind::max : name == "Min" ? BinaryKind::min : BinaryKind::add;
  for (std::size_t i = 0; i < node.input_count(); ++i)
    if (!node.has(i)) return fail("an operand is missing");
  Steps steps(node);
  Operand result = steps.input(0);
  Fact folded = node.fact(0);
  for (std::size_t i = 1; i < node.input_count(); ++i) {
    SIBYL_TRY(result, steps.binary(kind, result, steps.input(i)));
    folded.values = apply(kind, folded, node.fact(i), steps.fact(result).shape);
    folded.shape = steps.fact(result).shape;
  }
  if (name == "Mean" && node.input_count() > 1) {
    const auto count = static_cast<double>(node.input_count());
    SIBYL_TRY(result, steps.binary(BinaryKind::div, result, steps.scalar(count, node.dtype(0))));
    folded.values = nullptr;
  }
  Lowering lowering = std::move(steps).result(result);
  lowering.outputs[0].values = folded.values;
  return lowering;
}

Result<Lowering> where(const Node& node) {
  SIBYL_TRY(const Shape choices, broadcast(node.shape(1), node.shape(2)));
  SIBYL_TRY(const Shape shape, broadcast(node.shape(0), choices));
  Lowering lowering = single(node, Where{}, {0, 1, 2}, shape, node.dtype(1));
  lowering.outputs[0].values = select(node.fact(0), node.fact(1), node.fact(2), shape);
  return lowering;
}

}  // namespace

std::span<const Operator> binary_operators() {
  static constexpr Operator table[] = {
      {"Add", binary, 2},
      {"Sub", binary, 2},
      {"Mul", binary, 2},
      {"Div", binary, 2},
      {"Pow", binary, 2},
      {"Mod", binary, 2},
      {"Equal", binary, 2},
      {"Less", binary, 2},
      {"LessOrEqual", binary, 2},
      {"Greater", binary, 2},
      {"GreaterOrEqual", binary, 2},
      {"And", binary, 2},
      {"Or", binary, 2},
      {"Sum", variadic},
      {"Mean", variadic},
      {"Max", variadic},
      {"Min", variadic},
      {"Where", where, 3},
  };
  return table;
}

}  // namespace sibyl::onnx_import

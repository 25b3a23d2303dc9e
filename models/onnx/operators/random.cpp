// Numbers drawn anew each step: what dropout is made of where an exporter spells it out (torch's stochastic depth:
// RandomUniformLike, Less, Cast, Div, Mul). A draw is a dropout of ones, whose kernel also fills its operand's shape
// with random numbers; models/canonical makes one dropout of the comparison and what follows.
#include <algorithm>

#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

// One number for each sample where the export baked its batch in: [B, 1, 1, 1].
Shape with_batch(const Node& node, Shape shape) {
  const bool rows = shape.size() > 1 && shape.front() == node.batches()[0] && product(shape) == shape.front();
  if (rows) shape.front() = node.batches()[node.side()];
  return shape;
}

DType drawn_type(const Node& node, DType otherwise) {
  switch (node.integer("dtype", 0)) {
    case 1: return DType::f32;
    case 10: return DType::f16;
    case 11: return DType::f64;
    case 16: return DType::bf16;
    default: return is_floating(otherwise) ? otherwise : DType::f32;
  }
}

Operand draw(Steps& steps, const Shape& shape, DType type) {
  const Operand ones = steps.add(Expand{}, {steps.scalar(1.0, type)}, shape);
  return steps.add(Dropout{0.5}, {ones}, shape);
}

Lowering drawn(Steps steps, Operand result) {
  Lowering lowering = std::move(steps).result(result);
  lowering.drawn = true;
  return lowering;
}

Shape shape_like(const Node& node) { return node.batch_axis(0) ? node.shape(0) : with_batch(node, node.shape(0)); }

Result<Lowering> uniform_like(const Node& node) {
  Steps steps(node);
  const Operand y = draw(steps, shape_like(node), drawn_type(node, node.dtype(0)));
  return drawn(std::move(steps), y);
}

Result<Lowering> uniform(const Node& node) {
  const auto shape = node.integers("shape");
  if (!shape || !is_sane(*shape)) return fail("it has no shape");
  Steps steps(node);
  const Operand y = draw(steps, with_batch(node, *shape), drawn_type(node, DType::f32));
  return drawn(std::move(steps), y);
}

// 1 with the probability that its operand holds, else 0.
Result<Lowering> bernoulli(const Node& node) {
  Steps steps(node);
  const Shape shape = shape_like(node);
  const Operand number = draw(steps, shape, node.dtype(0));
  const KnownValues& known = node.fact(0).values;
  const bool alike = known && !known->empty() &&
                     std::all_of(known->begin(), known->end(), [&](double p) { return p == known->front(); });
  const Operand chance = alike ? steps.scalar(known->front(), node.dtype(0)) : steps.input(0);
  const Operand taken = steps.add(Binary{BinaryKind::less}, {number, chance}, shape, DType::boolean);
  const DType type = drawn_type(node, node.dtype(0));
  const Operand y = steps.add(Cast{type}, {taken}, shape, type);
  return drawn(std::move(steps), y);
}

}  // namespace

std::span<const Operator> random_operators() {
  static constexpr Operator table[] = {
      {"RandomUniformLike", uniform_like},
      {"RandomUniform", uniform, 0},
      {"Bernoulli", bernoulli},
  };
  return table;
}

}  // namespace sibyl::onnx_import

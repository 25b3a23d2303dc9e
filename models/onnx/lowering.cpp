#include "models/onnx/lowering.h"

#include <algorithm>

namespace sibyl::onnx_import {

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t result = 1;
  for (const std::int64_t extent : extents) result *= extent;
  return result;
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t back = 0; back < result.size(); ++back) {
    const std::int64_t x = back < a.size() ? a[a.size() - 1 - back] : 1;
    const std::int64_t y = back < b.size() ? b[b.size() - 1 - back] : 1;
    if (x != y && x != 1 && y != 1)
      return fail("shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast together");
    result[result.size() - 1 - back] = x == 1 ? y : x;
  }
  return result;
}

Operand Steps::constant(Fact fact) {
  lowering_.constants.push_back(std::move(fact));
  return {Operand::From::constant, lowering_.constants.size() - 1};
}

Operand Steps::scalar(double value, DType dtype) {
  return constant({dtype, {}, std::make_shared<Values>(Values{value})});
}

const Fact& Steps::fact(Operand operand) const {
  switch (operand.from) {
    case Operand::From::local: return lowering_.locals[operand.index];
    case Operand::From::constant: return lowering_.constants[operand.index];
    default: return node_->fact(operand.index);
  }
}

Operand Steps::add(Attributes attributes, std::vector<Operand> inputs, Shape shape, std::optional<DType> dtype) {
  const DType type = dtype ? *dtype : fact(inputs.front()).dtype;
  return add_all(std::move(attributes), std::move(inputs), {Fact{type, std::move(shape), {}}}).front();
}

std::vector<Operand> Steps::add_all(Attributes attributes, std::vector<Operand> inputs, std::vector<Fact> results) {
  std::vector<Operand> outputs;
  for (Fact& result : results) {
    outputs.push_back({Operand::From::local, lowering_.locals.size()});
    lowering_.locals.push_back(std::move(result));
  }
  lowering_.steps.push_back({std::move(attributes), std::move(inputs), outputs});
  return outputs;
}

Operand Steps::reshape(Operand x, Shape shape) {
  if (fact(x).shape == shape) return x;
  return add(Reshape{}, {x}, std::move(shape));
}

Operand Steps::transpose(Operand x, const Ints& permutation) {
  if (std::is_sorted(permutation.begin(), permutation.end())) return x;
  Shape shape;
  for (const std::int64_t from : permutation) shape.push_back(fact(x).shape[static_cast<std::size_t>(from)]);
  return add(Transpose{permutation}, {x}, std::move(shape));
}

Result<Operand> Steps::binary(BinaryKind kind, Operand a, Operand b) {
  SIBYL_TRY(Shape shape, broadcast(fact(a).shape, fact(b).shape));
  return add(Binary{kind}, {a, b}, std::move(shape));
}

Lowering Steps::result(Operand last) && {
  lowering_.outputs = {fact(last)};
  if (last.from == Operand::From::input) {
    lowering_.alias = last.index;
    return std::move(lowering_);
  }
  const auto rename = [&](Operand& operand) {
    if (operand.from == Operand::From::local && operand.index == last.index) operand = {Operand::From::output, 0};
  };
  for (Step& step : lowering_.steps) {
    for (Operand& operand : step.inputs) rename(operand);
    for (Operand& operand : step.outputs) rename(operand);
  }
  return std::move(lowering_);
}

Lowering Steps::split(Operand x, std::size_t axis, Ints sizes) && {
  Step step{Split{static_cast<std::int64_t>(axis), sizes}, {x}, {}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Fact part{fact(x).dtype, fact(x).shape, {}};
    part.shape[axis] = sizes[i];
    lowering_.outputs.push_back(std::move(part));
    step.outputs.push_back({Operand::From::output, i});
  }
  lowering_.steps.push_back(std::move(step));
  return std::move(lowering_);
}

Lowering single(const Node& node, Attributes attributes, const std::vector<std::size_t>& inputs, Shape shape,
                DType dtype) {
  Lowering lowering;
  lowering.outputs = {{dtype, std::move(shape), {}}};
  Step step{std::move(attributes), {}, {{Operand::From::output, 0}}};
  for (const std::size_t i : inputs) step.inputs.push_back(node.has(i) ? Operand{Operand::From::input, i} : Operand{});
  lowering.steps.push_back(std::move(step));
  return lowering;
}

Lowering same_as(std::size_t input, const Node& node) {
  Lowering lowering;
  lowering.outputs = {node.fact(input)};
  lowering.alias = input;
  return lowering;
}

Lowering constant(Fact fact) {
  Lowering lowering;
  lowering.outputs = {std::move(fact)};
  lowering.of_shapes = true;
  return lowering;
}

Lowering unsupported(std::string reason) {
  Lowering lowering;
  lowering.unsupported = std::move(reason);
  return lowering;
}

}  // namespace sibyl::onnx_import

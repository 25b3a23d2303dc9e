#include "models/onnx/emit.h"

#include <fmt/format.h>

#include "models/mask.h"

namespace sibyl::onnx_import {
namespace {

// A mask of as many keys as queries that is not the causal one, which such masks are else taken to be.
bool is_odd_mask(const Fact& fact) {
  if (fact.shape.size() < 2) return false;
  const std::int64_t size = fact.shape.back();
  const bool square = size <= max_known_values && fact.shape[fact.shape.size() - 2] == size;
  if (!square || element_count(fact.shape) != size * size) return false;
  const auto causal = [&](MaskForm form) { return is_causal(*fact.values, size, form); };
  if (fact.dtype == DType::boolean) return !causal(MaskForm::keeps_where_true) && !causal(MaskForm::keeps_where_false);
  return is_added_mask(*fact.values) && !causal(MaskForm::added);
}

// Integers index, floats and booleans mask: larger ones are not worth their memory, unless they say what they are.
bool worth_keeping(const Fact& fact) {
  constexpr std::size_t most_masks = 4096;
  if (!fact.values) return false;
  const bool may_mask = is_floating(fact.dtype) || fact.dtype == DType::boolean;
  return !may_mask || fact.values->size() <= most_masks || is_odd_mask(fact);
}

bool keeps_ids(const Attributes& attributes) {
  return std::holds_alternative<Reshape>(attributes) || std::holds_alternative<Cast>(attributes) ||
         std::holds_alternative<Slice>(attributes) || std::holds_alternative<Transpose>(attributes) ||
         std::holds_alternative<Expand>(attributes) || std::holds_alternative<Copy>(attributes);
}

DType held_type(DType stored) {
  return is_floating(stored) && size_in_bytes(stored) < size_in_bytes(DType::f32) ? DType::f32 : stored;
}

// Whether the two sides of a node differ in more than extents.
std::string difference(const std::array<Lowering, 2>& lowered) {
  const auto& [a, b] = lowered;
  bool same = a.steps.size() == b.steps.size();
  for (std::size_t i = 0; same && i < a.steps.size(); ++i) same = a.steps[i].attributes == b.steps[i].attributes;
  return same ? "" : "what it computes depends on the size of the batch";
}

}  // namespace

std::string growth_problem(const std::array<Fact, 2>& at, const Batches& batches) {
  const auto &a = at[0].shape, &b = at[1].shape;
  if (a.size() != b.size()) return "the rank of its result depends on the size of the batch";
  if (a == b) return {};
  const auto axis = differing_axis(a, b);
  if (!axis) return "its result " + to_string(a) + " grows with the batch on several axes";
  // Exact where an extent is a multiple of its batch; extents are below 2^62, so the products are compared by division.
  if (a[*axis] % batches[0] != 0 || b[*axis] % batches[1] != 0 || a[*axis] / batches[0] != b[*axis] / batches[1])
    return fmt::format("axis {} of its result {} does not grow in proportion to the batch", *axis, to_string(a));
  return {};
}

TensorId Emitter::add(const std::string& name, const std::array<Fact, 2>& at, TensorKind kind) {
  Tensor tensor;
  tensor.name = name;
  tensor.shape = at[side_].shape;
  tensor.dtype = held_type(at[side_].dtype);
  tensor.kind = kind;
  if (kind == TensorKind::parameter && tensor.dtype != at[side_].dtype) stored = at[side_].dtype;
  tensor.batch_axis = differing_axis(at[0].shape, at[1].shape);
  if (kind == TensorKind::buffer && worth_keeping(at[side_])) tensor.values = *at[side_].values;
  first_operand_.emplace_back();
  return graph.add(std::move(tensor));
}

TensorId Emitter::add_input(const Value& value) { return add(value.name, value.at, TensorKind::input); }

TensorId Emitter::tensor_of(Value& value, bool statistic) {
  if (!value.tensor.valid()) {
    const bool trained = value.source == Source::weight && !statistic;
    value.tensor = add(value.name, value.at, trained ? TensorKind::parameter : TensorKind::buffer);
  }
  return value.tensor;
}

// Ids that index a table of `rows` rows, and the input they were sliced or reshaped from, are below `rows`.
void Emitter::bound_indices(TensorId ids, std::int64_t rows) {
  for (TensorId id = ids; id.valid(); id = first_operand_[id.index()]) {
    Tensor& tensor = graph.at(id);
    if (tensor.index_bound == 0 || tensor.index_bound > rows) tensor.index_bound = rows;
  }
}

struct Emitter::Node {
  const std::string& name;
  const std::array<Lowering, 2>& lowered;
  const std::vector<Value*>& inputs;
  const std::vector<Value*>& outputs;
  std::vector<TensorId> locals, constants;

  [[nodiscard]] std::array<Fact, 2> local(std::size_t i) const { return {lowered[0].locals[i], lowered[1].locals[i]}; }
  [[nodiscard]] std::array<Fact, 2> constant(std::size_t i) const {
    return {lowered[0].constants[i], lowered[1].constants[i]};
  }

  // Why it cannot be written down.
  [[nodiscard]] std::string problem(const Batches& batches) const {
    if (std::string found = difference(lowered); !found.empty()) return found;
    std::vector<std::array<Fact, 2>> facts;
    for (const Value* output : outputs)
      if (output != nullptr && output->source == Source::activation) facts.push_back(output->at);
    for (const Value* input : inputs)
      if (input != nullptr && !input->tensor.valid()) facts.push_back(input->at);
    for (std::size_t i = 0; i < lowered[0].locals.size(); ++i) facts.push_back(local(i));
    for (const auto& at : facts)
      if (std::string found = growth_problem(at, batches); !found.empty()) return found;
    return {};
  }
};

TensorId Emitter::tensor_of(const Operand& operand, Node& node) {
  const std::size_t i = operand.index;
  const auto once = [&](TensorId& id, const std::string& name, const std::array<Fact, 2>& at, TensorKind kind) {
    if (!id.valid()) id = add(name, at, kind);
    return id;
  };
  switch (operand.from) {
    case Operand::From::input: return tensor_of(*node.inputs[i], operand.statistic);
    case Operand::From::constant:
      return once(node.constants[i], fmt::format("{}.constant{}", node.name, i), node.constant(i), TensorKind::buffer);
    case Operand::From::local:
      return once(node.locals[i], fmt::format("{}.{}", node.name, i), node.local(i), TensorKind::activation);
    case Operand::From::output:
      if (i >= node.outputs.size() || node.outputs[i] == nullptr) return {};
      return once(node.outputs[i]->tensor, node.outputs[i]->name, node.outputs[i]->at, TensorKind::activation);
    case Operand::From::absent: break;
  }
  return {};
}

void Emitter::write(const Step& step, std::string name, Node& node) {
  Operation operation;
  operation.name = std::move(name);
  operation.attributes = step.attributes;
  if (auto* cast = std::get_if<Cast>(&operation.attributes)) cast->to = held_type(cast->to);
  for (const Operand& operand : step.inputs) operation.inputs.push_back(tensor_of(operand, node));
  for (const Operand& operand : step.outputs) operation.outputs.push_back(tensor_of(operand, node));
  if (std::holds_alternative<Embedding>(step.attributes))
    bound_indices(operation.inputs[1], graph[operation.inputs[0]].shape[0]);
  if (const auto* loss = std::get_if<CrossEntropy>(&step.attributes))
    bound_indices(operation.inputs[1], graph[operation.inputs[0]].shape[static_cast<std::size_t>(loss->class_axis)]);
  for (std::size_t i = 1; i < operation.inputs.size(); ++i)
    if (const auto axis = index_into(step.attributes, i))
      bound_indices(operation.inputs[i], graph[operation.inputs[0]].shape[*axis]);
  if (keeps_ids(step.attributes) && operation.outputs[0].valid())
    first_operand_[operation.outputs[0].index()] = operation.inputs[0];
  graph.add(std::move(operation));
}

std::string Emitter::emit(const std::string& name, const std::array<Lowering, 2>& lowered,
                          const std::vector<Value*>& inputs, const std::vector<Value*>& outputs) {
  Node node{name, lowered, inputs, outputs, {}, {}};
  if (std::string problem = node.problem(batches_); !problem.empty()) return problem;
  const Lowering& chosen = lowered[side_];
  node.locals.resize(chosen.locals.size());
  node.constants.resize(chosen.constants.size());
  for (std::size_t i = 0; i < chosen.steps.size(); ++i)
    write(chosen.steps[i], i + 1 == chosen.steps.size() ? name : fmt::format("{}.{}", name, i), node);
  return {};
}

}  // namespace sibyl::onnx_import

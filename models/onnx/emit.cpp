#include "models/onnx/emit.h"

#include <fmt/format.h>

namespace sibyl::onnx_import {
namespace {

// Integers index, floats and booleans mask: larger ones are not worth their memory.
bool worth_keeping(const Fact& fact) {
  constexpr std::size_t most_masks = 4096;
  return fact.values && (fact.values->size() <= most_masks || (!is_floating(fact.dtype) && fact.dtype != DType::boolean));
}

bool keeps_ids(const Attributes& attributes) {
  return std::holds_alternative<Reshape>(attributes) || std::holds_alternative<Cast>(attributes) ||
         std::holds_alternative<Slice>(attributes) || std::holds_alternative<Transpose>(attributes) ||
         std::holds_alternative<Expand>(attributes);
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
  tensor.dtype = at[side_].dtype;
  tensor.kind = kind;
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

std::string Emitter::emit(const std::string& name, const std::array<Lowering, 2>& lowered, const std::vector<Value*>& inputs,
                          const std::vector<Value*>& outputs) {
  if (std::string problem = difference(lowered); !problem.empty()) return problem;
  for (const Value* output : outputs)
    if (output != nullptr && output->source == Source::activation)
      if (std::string problem = growth_problem(output->at, batches_); !problem.empty()) return problem;
  for (const Value* input : inputs)
    if (input != nullptr && !input->tensor.valid())
      if (std::string problem = growth_problem(input->at, batches_); !problem.empty()) return problem;
  std::vector<TensorId> locals;
  const auto& [a, b] = lowered;
  for (std::size_t i = 0; i < a.locals.size(); ++i) {
    const std::array<Fact, 2> at{a.locals[i], b.locals[i]};
    if (std::string problem = growth_problem(at, batches_); !problem.empty()) return problem;
    locals.emplace_back();
  }
  const Lowering& chosen = lowered[side_];
  std::vector<TensorId> constants;
  for (std::size_t i = 0; i < chosen.constants.size(); ++i)
    constants.push_back(add(fmt::format("{}.constant{}", name, i), {a.constants[i], b.constants[i]}, TensorKind::buffer));
  const auto tensor = [&](const Operand& operand) -> TensorId {
    switch (operand.from) {
      case Operand::From::input: return tensor_of(*inputs[operand.index], operand.statistic);
      case Operand::From::constant: return constants[operand.index];
      case Operand::From::local:
        if (!locals[operand.index].valid())
          locals[operand.index] = add(fmt::format("{}.{}", name, operand.index), {a.locals[operand.index], b.locals[operand.index]}, TensorKind::activation);
        return locals[operand.index];
      case Operand::From::output: {
        if (operand.index >= outputs.size() || outputs[operand.index] == nullptr) return {};
        Value& value = *outputs[operand.index];
        if (!value.tensor.valid()) value.tensor = add(value.name, value.at, TensorKind::activation);
        return value.tensor;
      }
      case Operand::From::absent: break;
    }
    return {};
  };
  for (std::size_t i = 0; i < chosen.steps.size(); ++i) {
    const Step& step = chosen.steps[i];
    Operation operation;
    operation.name = i + 1 == chosen.steps.size() ? name : fmt::format("{}.{}", name, i);
    operation.attributes = step.attributes;
    for (const Operand& operand : step.inputs) operation.inputs.push_back(tensor(operand));
    for (const Operand& operand : step.outputs) operation.outputs.push_back(tensor(operand));
    if (std::holds_alternative<Embedding>(step.attributes))
      bound_indices(operation.inputs[1], graph[operation.inputs[0]].shape[0]);
    if (keeps_ids(step.attributes) && operation.outputs[0].valid())
      first_operand_[operation.outputs[0].index()] = operation.inputs[0];
    graph.add(std::move(operation));
  }
  return {};
}

}  // namespace sibyl::onnx_import

#include "profiler/torch/operands.h"

#include <algorithm>
#include <variant>

#include "aten/device.h"
#include "aten/dtype.h"

namespace sibyl {
namespace {

bool is_logical(const Attributes& attributes) {
  if (const auto* binary = std::get_if<Binary>(&attributes))
    return binary->kind == BinaryKind::logical_and || binary->kind == BinaryKind::logical_or;
  const auto* unary = std::get_if<Unary>(&attributes);
  return unary && unary->kind == UnaryKind::logical_not;
}

// Values for which every function is defined and nothing overflows or becomes denormal: positive and near 1. Most
// kernels take as long on them as on any others, but for NaN and denormals. Max pooling branches on comparisons and
// follows a ReLU in nearly every network: half of its values are zeros.
torch::Tensor ordinary_values(const Attributes& attributes, const Shape& shape, c10::ScalarType type) {
  const auto* pool = std::get_if<Pool>(&attributes);
  torch::Tensor values = at::empty(shape, at::TensorOptions(aten::compute_device()).dtype(at::kFloat));
  if (pool && pool->kind == PoolKind::max)
    values.uniform_(-1.0, 1.0).clamp_min_(0.0);
  else
    values.uniform_(0.5, 1.5);
  return type == at::kFloat ? values : values.to(type);
}

bool has_gradient(OperandRole role) { return role == OperandRole::activation || role == OperandRole::weight; }

}  // namespace

OperandRole role_of(const Signature& signature, std::size_t operand) {
  if (operand >= signature.inputs.size() || signature.inputs[operand] == Shape{0}) return OperandRole::absent;
  const Attributes& attributes = signature.attributes;
  if (is_logical(attributes)) return OperandRole::condition;
  if (std::holds_alternative<Convolution>(attributes) || std::holds_alternative<Linear>(attributes) ||
      std::holds_alternative<GroupedLinear>(attributes))
    return operand == 0 ? OperandRole::activation : OperandRole::weight;
  if (std::holds_alternative<Normalization>(attributes))
    return operand == 0 ? OperandRole::activation : operand < 3 ? OperandRole::weight : OperandRole::buffer;
  if (std::holds_alternative<ApplyNorm>(attributes))
    return operand < 2 ? OperandRole::activation : operand < 4 ? OperandRole::weight : OperandRole::buffer;
  if (std::holds_alternative<ClassStatistics>(attributes))
    return operand == 0 ? OperandRole::activation : operand == 1 ? OperandRole::ids : OperandRole::buffer;
  if (std::holds_alternative<Embedding>(attributes)) return operand == 0 ? OperandRole::weight : OperandRole::ids;
  if (std::holds_alternative<Gather>(attributes) || std::holds_alternative<CrossEntropy>(attributes))
    return operand == 0 ? OperandRole::activation : OperandRole::ids;
  if (std::holds_alternative<Dispatch>(attributes) || std::holds_alternative<Combine>(attributes))
    return operand == 1 ? OperandRole::ids : OperandRole::activation;
  if (std::holds_alternative<Attention>(attributes)) return operand < 3 ? OperandRole::activation : OperandRole::buffer;
  if (std::holds_alternative<Where>(attributes)) return operand == 0 ? OperandRole::condition : OperandRole::activation;
  if (std::holds_alternative<Unary>(attributes)) return operand == 0 ? OperandRole::activation : OperandRole::weight;
  if (std::holds_alternative<MeanSquaredError>(attributes))
    return operand == 0 ? OperandRole::activation : OperandRole::buffer;
  if (std::holds_alternative<OptimizerUpdate>(attributes)) return OperandRole::weight;
  if (index_into(attributes, operand)) return OperandRole::ids;
  return OperandRole::activation;
}

std::int64_t id_bound(const Signature& signature, std::size_t operand) {
  const Shape& values = signature.inputs.front();
  if (std::holds_alternative<Dispatch>(signature.attributes)) return signature.outputs.front().front();  // experts
  if (const auto* back = std::get_if<Combine>(&signature.attributes)) return values.front() * back->capacity;  // places
  std::size_t axis = index_into(signature.attributes, operand).value_or(0);  // an embedding's rows
  if (const auto* gather = std::get_if<Gather>(&signature.attributes)) axis = static_cast<std::size_t>(gather->axis);
  if (const auto* classes = std::get_if<ClassStatistics>(&signature.attributes))
    axis = static_cast<std::size_t>(classes->class_axis);
  if (const auto* loss = std::get_if<CrossEntropy>(&signature.attributes))
    axis = loss->class_axis < 0 ? values.size() - 1 : static_cast<std::size_t>(loss->class_axis);
  return std::max<std::int64_t>(1, axis < values.size() ? values[axis] : 1);
}

std::vector<torch::Tensor> make_operands(const Signature& signature, std::uint32_t gradients) {
  const c10::ScalarType type = aten::scalar_type(signature.dtype);
  const at::TensorOptions device(aten::compute_device());
  std::vector<torch::Tensor> operands;
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
    const Shape& shape = signature.inputs[i];
    const OperandRole role = role_of(signature, i);
    torch::Tensor operand;  // undefined: absent
    if (role == OperandRole::ids)
      operand = at::randint(id_bound(signature, i), shape, device.dtype(at::kLong));
    else if (role == OperandRole::condition)
      operand = at::randint(2, shape, device.dtype(at::kBool));
    else if (role != OperandRole::absent)
      operand = ordinary_values(signature.attributes, shape, type);
    if ((gradients >> i & 1U) != 0 && operand.defined()) operand.set_requires_grad(true);
    operands.push_back(std::move(operand));
  }
  return operands;
}

std::uint32_t differentiable_operands(const Signature& signature) {
  std::uint32_t mask = 0;
  if (!is_floating(signature.dtype)) return mask;
  for (std::size_t i = 0; i < signature.inputs.size() && i < 32; ++i)
    if (has_gradient(role_of(signature, i))) mask |= 1U << i;
  return mask;
}

}  // namespace sibyl

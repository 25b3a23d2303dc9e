#include "trainer/initialize.h"

#include <cmath>
#include <optional>

#include "aten/dtype.h"
#include "trainer/random.h"

namespace sibyl::trainer {
namespace {

struct Use {
  const Attributes* operation = nullptr;
  std::size_t operand = 0;
};

// The first operation of the model that uses the tensor.
std::optional<Use> first_use(const Graph& graph, TensorId id) {
  for (const Operation& operation : graph.operations())
    for (std::size_t i = 0; i < operation.inputs.size(); ++i)
      if (operation.inputs[i] == id) return Use{&operation.attributes, i};
  return std::nullopt;
}

struct Filling {
  double constant = 0.0;
  double deviation = 0.0;  // of a random one
};

Filling random(double variance) { return {0.0, std::sqrt(variance)}; }

double elements_after_first(const Shape& shape) {
  return static_cast<double>(element_count(shape)) / static_cast<double>(shape.front());
}

constexpr double table_variance = 0.02 * 0.02;

Filling filling_of(const Use& use, const Shape& shape) {
  if (std::holds_alternative<Normalization>(*use.operation)) return {use.operand == 1 ? 1.0 : 0.0, 0.0};
  if (const auto* binary = std::get_if<Binary>(use.operation)) {
    if (binary->kind == BinaryKind::mul || binary->kind == BinaryKind::div) return {1.0, 0.0};
    return shape.size() < 2 ? Filling{} : random(table_variance);
  }
  if (const auto* unary = std::get_if<Unary>(use.operation); unary && unary->kind == UnaryKind::prelu)
    return {0.25, 0.0};
  if (shape.size() < 2) return {};
  if (const auto* convolution = std::get_if<Convolution>(use.operation)) {
    const double share = convolution->transposed
                             ? static_cast<double>(shape[0]) / static_cast<double>(shape[1] * convolution->groups)
                             : 1.0;
    return random(2.0 / (elements_after_first(shape) * share));
  }
  if (const auto* linear = std::get_if<Linear>(use.operation))
    return random(1.0 / static_cast<double>(linear->weight_kn ? shape[0] : shape[1]));
  if (const auto* grouped = std::get_if<GroupedLinear>(use.operation))
    return use.operand == 2 ? Filling{} : random(1.0 / static_cast<double>(shape[grouped->weight_kn ? 1 : 2]));
  if (std::holds_alternative<MatMul>(*use.operation))
    return random(1.0 / static_cast<double>(shape[shape.size() - (use.operand == 0 ? 1 : 2)]));
  return random(table_variance);
}

at::Tensor empty(const Shape& shape, DType dtype) {
  return at::empty(shape, at::TensorOptions().dtype(aten::scalar_type(dtype)));
}

void draw(at::Tensor& tensor, double deviation, RandomStream random_numbers) {
  at::Tensor values = tensor.scalar_type() == at::kFloat ? tensor : at::empty(tensor.sizes(), at::kFloat);
  const auto scale = static_cast<float>(deviation) * unit_variance;
  float* data = values.data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) data[i] = scale * random_numbers.symmetric();
  if (!values.is_same(tensor)) tensor.copy_(values);
}

}  // namespace

at::Tensor initial_parameter(const Graph& graph, const LocalTensor& local, const MeshGroups& groups,
                             std::uint64_t seed) {
  const Shape shape = groups.whole_shape(local);
  const std::optional<Use> use = first_use(graph, local.origin);
  const Filling filling = use ? filling_of(*use, shape) : Filling{};
  at::Tensor tensor = empty(shape, local.dtype).fill_(filling.constant);
  if (filling.deviation > 0.0) draw(tensor, filling.deviation, RandomStream(seed, graph[local.origin].name));
  return groups.own_part(std::move(tensor), local).requires_grad_(local.requires_gradient);
}

at::Tensor initial_buffer(const Graph& graph, const LocalTensor& local, const MeshGroups& groups) {
  const Shape shape = groups.whole_shape(local);
  const std::vector<double>& values = graph[local.origin].values;
  at::Tensor tensor = empty(shape, local.dtype);
  if (!values.empty() && static_cast<std::int64_t>(values.size()) == tensor.numel()) {
    tensor.copy_(at::tensor(values, at::kDouble).reshape(shape));
  } else if (values.size() == 1) {
    tensor.fill_(values.front());
  } else {
    const std::optional<Use> use = first_use(graph, local.origin);
    const bool variance = use && use->operand == 4 && std::holds_alternative<Normalization>(*use->operation);
    tensor.fill_(variance || local.dtype == DType::boolean ? 1 : 0);
  }
  return groups.own_part(std::move(tensor), local);
}

}  // namespace sibyl::trainer

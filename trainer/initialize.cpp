#include "trainer/initialize.h"

#include <cmath>
#include <optional>

#include "aten/dtype.h"
#include "trainer/random.h"

namespace sibyl::trainer {
namespace {

struct Use {
  const Compute* compute = nullptr;
  std::size_t operand = 0;
};

// The first operation that uses the tensor or a cast of it.
std::optional<Use> first_use(const Stage& stage, LocalTensorId id) {
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    if (!compute || std::holds_alternative<Cast>(compute->attributes)) continue;
    for (std::size_t i = 0; i < compute->inputs.size(); ++i)
      if (compute->inputs[i].valid() && stage[compute->inputs[i]].origin == stage[id].origin) return Use{compute, i};
  }
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
  if (std::holds_alternative<Normalization>(use.compute->attributes)) return {use.operand == 1 ? 1.0 : 0.0, 0.0};
  if (const auto* binary = std::get_if<Binary>(&use.compute->attributes)) {
    if (binary->kind == BinaryKind::mul || binary->kind == BinaryKind::div) return {1.0, 0.0};
    return shape.size() < 2 ? Filling{} : random(table_variance);
  }
  if (const auto* unary = std::get_if<Unary>(&use.compute->attributes); unary && unary->kind == UnaryKind::prelu)
    return {0.25, 0.0};
  if (shape.size() < 2) return {};
  if (const auto* convolution = std::get_if<Convolution>(&use.compute->attributes)) {
    const double share = convolution->transposed
                             ? static_cast<double>(shape[0]) / static_cast<double>(shape[1] * convolution->groups)
                             : 1.0;
    return random(2.0 / (elements_after_first(shape) * share));
  }
  if (const auto* linear = std::get_if<Linear>(&use.compute->attributes))
    return random(1.0 / static_cast<double>(linear->weight_kn ? shape[0] : shape[1]));
  if (std::holds_alternative<MatMul>(use.compute->attributes))
    return random(1.0 / static_cast<double>(shape[shape.size() - (use.operand == 0 ? 1 : 2)]));
  return random(table_variance);
}

at::Tensor empty_like(const LocalTensor& tensor) {
  return at::empty(tensor.shape, at::TensorOptions().dtype(aten::scalar_type(tensor.dtype)));
}

}  // namespace

at::Tensor initial_parameter(const Graph& graph, const Stage& stage, LocalTensorId id, std::uint64_t seed) {
  const LocalTensor& local = stage[id];
  const std::optional<Use> use = first_use(stage, id);
  const Filling filling = use ? filling_of(*use, local.shape) : Filling{};
  at::Tensor tensor = empty_like(local).fill_(filling.constant);
  if (filling.deviation > 0.0) {
    at::Tensor values = tensor.scalar_type() == at::kFloat ? tensor : at::empty(local.shape, at::kFloat);
    const auto scale = static_cast<float>(filling.deviation) * unit_variance;
    RandomStream random_numbers(seed, graph[local.origin].name);
    float* data = values.data_ptr<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i) data[i] = scale * random_numbers.symmetric();
    if (!values.is_same(tensor)) tensor.copy_(values);
  }
  return tensor.requires_grad_(local.requires_gradient);
}

at::Tensor initial_buffer(const Graph& graph, const Stage& stage, LocalTensorId id) {
  const LocalTensor& local = stage[id];
  const std::vector<double>& values = graph[local.origin].values;
  at::Tensor tensor = empty_like(local);
  if (!values.empty() && static_cast<std::int64_t>(values.size()) == tensor.numel())
    return tensor.copy_(at::tensor(values, at::kDouble).reshape(local.shape));
  if (values.size() == 1) return tensor.fill_(values.front());
  const std::optional<Use> use = first_use(stage, id);
  const bool variance = use && use->operand == 4 && std::holds_alternative<Normalization>(use->compute->attributes);
  return tensor.fill_(variance || local.dtype == DType::boolean ? 1 : 0);
}

}  // namespace sibyl::trainer

#include "profiler/torch/bench.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "aten/device.h"
#include "aten/run_operation.h"
#include "aten/versions.h"
#include "profiler/torch/operands.h"

namespace sibyl {
namespace {

// In place of a gradient that others hold, too, the node gets one that nobody else does.
class HandOver final : public torch::autograd::FunctionPreHook {
 public:
  HandOver(std::uint32_t output, torch::Tensor gradient) : output_(output), gradient_(std::move(gradient)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& incoming) override {
    torch::autograd::variable_list gradients = incoming;
    gradients.at(output_) = std::exchange(gradient_, {});
    return gradients;
  }

 private:
  std::uint32_t output_;
  torch::Tensor gradient_;
};

}  // namespace

void write_again(torch::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_floating_point()) return;
  const at::NoGradGuard no_gradient;
  tensor.mul_(1.0);
}

Bytes bytes_of(const std::vector<Shape>& shapes, DType type) {
  double elements = 0;
  for (const Shape& shape : shapes) elements += static_cast<double>(element_count(shape));
  return Bytes{elements * size_in_bytes(type)};
}

Bench::Bench(const KernelKey& key, int copies) : key_(key) {
  const bool backward = key.pass == Pass::backward;
  const std::uint32_t mask = backward ? key.gradients : differentiable_operands(key.signature);
  operands_.push_back(make_operands(key.signature, mask));
  for (int i = 1; i < copies; ++i) operands_.push_back(copy_operands(operands_.front()));
  results_.resize(operands_.size());
  if (!backward) return;

  for (const Tensors& operands : operands_) {
    Tensors masked;
    for (const torch::Tensor& operand : operands)
      if (operand.defined() && operand.requires_grad()) masked.push_back(operand);
    masked_.push_back(std::move(masked));
  }
  forward(0);
  const Tensors outputs = differentiated(0);
  if (outputs.empty() || masked_.front().empty()) throw std::invalid_argument("it has no such backward pass");
  for (int i = 0; i < copies; ++i) {
    Tensors gradients;
    for (const torch::Tensor& output : outputs) gradients.push_back(at::ones(output.sizes(), output.options()));
    result_gradients_.push_back(std::move(gradients));
  }
  release(0);
}

void Bench::forward(int copy) {
  const at::AutoGradMode recording(true);
  results_[at(copy)] = aten::run_operation(key_.signature.attributes, operands_[at(copy)], key_.signature.outputs);
}

Bench::Tensors Bench::differentiated(int copy) const {
  Tensors outputs;
  for (const torch::Tensor& result : results_[at(copy)])
    if (result.defined() && result.requires_grad()) outputs.push_back(result);
  return outputs;
}

Bench::Tensors Bench::backward(int copy) {
  return torch::autograd::grad(differentiated(copy), masked_[at(copy)], result_gradients_[at(copy)],
                               /*retain_graph=*/aten::nothing, /*create_graph=*/false, /*allow_unused=*/true);
}

void Bench::hand_over_gradients(int copy) {
  const Tensors outputs = differentiated(copy);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].grad_fn())  // else it is an operand as it came
      outputs[i].grad_fn()->add_pre_hook(
          std::make_unique<HandOver>(outputs[i].output_nr(), result_gradients_[at(copy)][i].clone()));
}

Bench::Tensors Bench::empty_backward(int copy) {
  const Tensors& leaves = masked_[at(copy)];
  return torch::autograd::grad(leaves, leaves, leaves, aten::nothing, false, true);
}

void Bench::warm_operand(int copy) {
  if (role_of(key_.signature, 0) == OperandRole::activation) write_again(operands_[at(copy)].front());
}

void Bench::warm_gradient(int copy) {
  for (torch::Tensor& gradient : result_gradients_[at(copy)]) write_again(gradient);
}

std::int64_t Bench::own_bytes(const Tensors& tensors, int copy) const {
  std::vector<const void*> seen;
  const auto own = [&](const torch::Tensor& tensor) -> std::int64_t {
    if (!tensor.defined() || std::find(seen.begin(), seen.end(), tensor.storage().data()) != seen.end()) return 0;
    seen.push_back(tensor.storage().data());
    const std::int64_t granule = aten::on_cuda() ? 512 : 64;  // as CUDA's allocator and as MemoryMeter count
    return (static_cast<std::int64_t>(tensor.storage().nbytes()) + granule - 1) / granule * granule;
  };
  for (const torch::Tensor& operand : operands_[at(copy)]) own(operand);
  if (at(copy) < result_gradients_.size())
    for (const torch::Tensor& gradient : result_gradients_[at(copy)]) own(gradient);
  std::int64_t total = 0;
  for (const torch::Tensor& tensor : tensors) total += own(tensor);
  return total;
}

Bytes bytes_touched(const KernelKey& key) {
  const Bytes operands = bytes_of(key.signature.inputs, key.signature.dtype);
  const Bytes results = bytes_of(key.signature.outputs, key.signature.dtype);
  return key.pass == Pass::forward ? operands + results : operands * 2.0 + results * 2.0;
}

}  // namespace sibyl

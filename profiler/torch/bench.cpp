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

JustMade::JustMade(const torch::Tensor& tensor, bool cold) {
  if (!tensor.defined() || !tensor.is_floating_point()) return;
  tensor_ = tensor;
  if (cold) source_ = tensor.detach().clone();
}

void JustMade::make() {
  if (!tensor_.defined()) return;
  const at::NoGradGuard no_gradient;
  (source_.defined() ? source_ : tensor_).mul_(1.0);
  if (source_.defined()) tensor_.copy_(source_);
}

Bench::Bench(const KernelKey& key, bool cold) : key_(key) {
  const bool backward = key.pass == Pass::backward;
  operands_ = make_operands(key.signature, backward ? key.gradients : differentiable_operands(key.signature));
  if (!backward) {
    if (role_of(key_.signature, 0) == OperandRole::activation) made_.emplace_back(operands_.front(), cold);
    return;
  }

  for (const torch::Tensor& operand : operands_)
    if (operand.defined() && operand.requires_grad()) masked_.push_back(operand);
  forward();
  const Tensors outputs = differentiated();
  if (outputs.empty() || masked_.empty()) throw std::invalid_argument("it has no such backward pass");
  for (const torch::Tensor& output : outputs) {
    result_gradients_.push_back(at::ones(output.sizes(), output.options()));
    made_.emplace_back(result_gradients_.back(), cold);
  }
  release();
}

void Bench::forward() {
  const at::AutoGradMode recording(true);
  results_ = aten::run_operation(key_.signature.attributes, operands_, key_.signature.outputs);
}

Bench::Tensors Bench::differentiated() const {
  Tensors outputs;
  for (const torch::Tensor& result : results_)
    if (result.defined() && result.requires_grad()) outputs.push_back(result);
  return outputs;
}

Bench::Tensors Bench::backward() {
  return torch::autograd::grad(differentiated(), masked_, result_gradients_,
                               /*retain_graph=*/aten::nothing, /*create_graph=*/false, /*allow_unused=*/true);
}

void Bench::hand_over_gradients() {
  const Tensors outputs = differentiated();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].grad_fn())  // else it is an operand as it came
      outputs[i].grad_fn()->add_pre_hook(
          std::make_unique<HandOver>(outputs[i].output_nr(), result_gradients_[i].clone()));
}

Bench::Tensors Bench::empty_backward() {
  return torch::autograd::grad(masked_, masked_, masked_, aten::nothing, false, true);
}

void Bench::make_incoming() {
  for (JustMade& made : made_) made.make();
}

std::int64_t Bench::own_bytes(const Tensors& tensors) const {
  std::vector<const void*> seen;
  const auto own = [&](const torch::Tensor& tensor) -> std::int64_t {
    if (!tensor.defined() || std::find(seen.begin(), seen.end(), tensor.storage().data()) != seen.end()) return 0;
    seen.push_back(tensor.storage().data());
    const std::int64_t granule = aten::on_cuda() ? 512 : 64;  // as CUDA's allocator and as MemoryMeter count
    return (static_cast<std::int64_t>(tensor.storage().nbytes()) + granule - 1) / granule * granule;
  };
  for (const torch::Tensor& operand : operands_) own(operand);
  for (const torch::Tensor& gradient : result_gradients_) own(gradient);
  std::int64_t total = 0;
  for (const torch::Tensor& tensor : tensors) total += own(tensor);
  return total;
}

}  // namespace sibyl

#include "aten/operations/families.h"

namespace sibyl::aten {

at::Tensor run(const Linear& op, const Tensors& in) {
  const at::Tensor& x = in.at(0);
  const at::Tensor& weight = in.at(1);
  const Optional<at::Tensor> bias = optional_operand(in, 2);
  if (!op.weight_kn) return at::linear(x, weight, bias);
  if (!bias) return at::matmul(x, weight);
  // As a model that stores [K, N] writes it (GPT-2's Conv1D): one addmm, the weight used where it lies.
  const at::Tensor rows = x.dim() == 2 ? x : x.reshape({-1, x.size(-1)});
  const at::Tensor y = at::addmm(*bias, rows, weight);
  if (x.dim() == 2) return y;
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(1);
  return y.view(shape);
}

at::Tensor run(const MatMul&, const Tensors& in) { return at::matmul(in.at(0), in.at(1)); }

}  // namespace sibyl::aten

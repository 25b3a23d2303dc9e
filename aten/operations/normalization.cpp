#include "aten/operations/families.h"

namespace sibyl::aten {
namespace {

// As LLaMA-style models write it.
at::Tensor rms_norm(const at::Tensor& x, std::int64_t axes, const at::Tensor& scale, double epsilon) {
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 1; i <= axes; ++i) dims.push_back(-i);
  const at::Tensor normalized = x * at::rsqrt(x.pow(2).mean(dims, true) + epsilon);
  return scale.defined() ? normalized * scale : normalized;
}

}  // namespace

at::Tensor run(const Normalization& op, const Tensors& in) {
  const at::Tensor& x = in.at(0);
  const Optional<at::Tensor> scale = optional_operand(in, 1), shift = optional_operand(in, 2);
  switch (op.kind) {
    case NormalizationKind::batch:
      return at::batch_norm(x, scale, shift, optional_operand(in, 3), optional_operand(in, 4), true, op.momentum,
                            op.epsilon, true);
    case NormalizationKind::layer:
      return at::layer_norm(x, x.sizes().slice(static_cast<std::size_t>(x.dim() - op.axes)), scale, shift, op.epsilon);
    case NormalizationKind::rms: return rms_norm(x, op.axes, operand(in, 1), op.epsilon);
    case NormalizationKind::group: return at::group_norm(x, op.groups, scale, shift, op.epsilon);
    case NormalizationKind::instance: break;
  }
  return at::instance_norm(x, scale, shift, nothing, nothing, true, op.momentum, op.epsilon, true);
}

// As torch.nn.functional.local_response_norm: the mean of squares over `size` channels by average pooling, one spatial
// dimension standing for all.
at::Tensor run(const LocalResponseNorm& op, const Tensors& in) {
  const at::Tensor& x = in.at(0);
  const at::Tensor squares = x.mul(x).reshape({x.size(0), 1, x.size(1), -1});
  const at::Tensor padded = at::constant_pad_nd(squares, {0, 0, op.size / 2, (op.size - 1) / 2}, 0);
  const at::Tensor means = at::avg_pool2d(padded, {op.size, 1}, {1, 1}).reshape(x.sizes());
  return x / means.mul(op.alpha).add(op.k).pow(op.beta);
}

at::Tensor run(const Softmax& op, const Tensors& in) {
  return op.log ? at::log_softmax(in.at(0), op.axis) : at::softmax(in.at(0), op.axis);
}

// On the CPU autograd keeps the scaled f32 noise it multiplies with; on CUDA a boolean mask.
at::Tensor run(const Dropout& op, const Tensors& in) { return at::dropout(in.at(0), op.ratio, true); }

}  // namespace sibyl::aten

#include <algorithm>
#include <functional>
#include <numeric>

#include "aten/operations/contiguous.h"
#include "aten/operations/families.h"

namespace sibyl::aten {
namespace {

at::Tensor product(at::Tensor x, Ints axes, bool keep_dims) {
  for (std::int64_t& axis : axes) axis = axis < 0 ? axis + x.dim() : axis;
  std::sort(axes.begin(), axes.end(), std::greater<>());  // from the back: earlier axes keep their numbers
  for (const std::int64_t axis : axes) x = x.prod(axis, keep_dims);
  return x;
}

}  // namespace

at::Tensor run(const Reduce& op, const Tensors& in) {
  const at::Tensor& x = in.at(0);
  Ints axes = op.axes;
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(x.dim()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  switch (op.kind) {
    case ReduceKind::sum: return contiguous_sum(x, axes, op.keep_dims);
    case ReduceKind::mean: return x.mean(axes, op.keep_dims);
    case ReduceKind::max: return x.amax(axes, op.keep_dims);
    case ReduceKind::min: return x.amin(axes, op.keep_dims);
    case ReduceKind::prod: return product(x, axes, op.keep_dims);
    case ReduceKind::l1: return at::linalg_vector_norm(x, 1, at::OptionalIntArrayRef(axes), op.keep_dims);
    case ReduceKind::l2: return at::linalg_vector_norm(x, 2, at::OptionalIntArrayRef(axes), op.keep_dims);
    case ReduceKind::argmax: return x.argmax(axes.front(), op.keep_dims);
    case ReduceKind::argmin: break;
  }
  return x.argmin(axes.front(), op.keep_dims);
}

at::Tensor run(const CrossEntropy& op, const Tensors& in) {
  const at::Tensor& logits = in.at(0);
  const at::Tensor targets = in.at(1).to(at::kLong);
  if (op.class_axis == logits.dim() - 1 || op.class_axis == -1)  // one row of classes per sample or token
    return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), targets.reshape({-1}));
  return at::cross_entropy_loss(logits, targets);
}

at::Tensor run(const MeanSquaredError&, const Tensors& in) { return at::mse_loss(in.at(0), in.at(1)); }

}  // namespace sibyl::aten

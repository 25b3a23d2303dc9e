#include "aten/operations/contiguous.h"
#include "aten/operations/families.h"

namespace sibyl::aten {

at::Tensor run(const Reshape&, const Tensors& in, const Shapes& out) { return in.at(0).reshape(out.at(0)); }

at::Tensor run(const Transpose& op, const Tensors& in) { return contiguous_permute(in.at(0), op.permutation); }

at::Tensor run(const Concat& op, const Tensors& in) { return contiguous_concat(in, op.axis); }

at::Tensor run(const Slice& op, const Tensors& in) {
  at::Tensor y = in.at(0);
  for (std::size_t i = 0; i < op.axes.size(); ++i) {
    const std::int64_t step = op.steps.empty() ? 1 : op.steps[i];
    if (step > 0) {
      y = y.slice(op.axes[i], op.starts[i], op.ends[i], step);
    } else {  // ATen's slices only go forward
      const auto indices =
          at::arange(op.starts[i], op.ends[i], step, y.options().dtype(at::kLong).requires_grad(false));
      y = y.index_select(op.axes[i], indices);
    }
  }
  return y;
}

Tensors run(const Split& op, const Tensors& in) { return in.at(0).split_with_sizes(op.sizes, op.axis); }

at::Tensor run(const Gather& op, const Tensors& in) {
  const at::Tensor& x = in.at(0);
  const at::Tensor& indices = in.at(1);
  // A scalar index is x[:, i]: a view.
  if (indices.dim() == 0) return x.select(op.axis, indices.item<std::int64_t>());
  const at::Tensor flat = indices.reshape({-1}).to(at::kLong);
  const at::Tensor from_front = at::where(flat < 0, flat + x.size(op.axis), flat);
  const at::Tensor rows = x.index_select(op.axis, from_front);
  if (indices.dim() == 1) return rows;
  std::vector<std::int64_t> shape = x.sizes().vec();
  const auto at_axis = shape.begin() + (op.axis < 0 ? op.axis + x.dim() : op.axis);
  shape.insert(shape.erase(at_axis), indices.sizes().begin(), indices.sizes().end());
  return rows.reshape(shape);
}

at::Tensor run(const Expand&, const Tensors& in, const Shapes& out) { return in.at(0).expand(out.at(0)); }

at::Tensor run(const Embedding& op, const Tensors& in) {
  const at::Tensor ids = in.at(1).to(at::kLong);
  return op.partial ? partial_embedding(in.at(0), ids) : at::embedding(in.at(0), ids);
}

}  // namespace sibyl::aten

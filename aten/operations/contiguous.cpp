#include "aten/operations/contiguous.h"

#include <torch/csrc/autograd/custom_function.h>

namespace sibyl::aten {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct Permute : Function<Permute> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::vector<std::int64_t>& permutation) {
    std::vector<std::int64_t> inverse(permutation.size());
    for (std::size_t i = 0; i < permutation.size(); ++i)
      inverse[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
    context->saved_data["inverse"] = inverse;
    return x.permute(permutation).contiguous();
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0].permute(context->saved_data["inverse"].toIntVector()).contiguous(), at::Tensor()};
  }
};

struct Concatenate : Function<Concatenate> {
  // A TensorList: Function::apply takes a std::vector for one operand that is no tensor, and records no gradient.
  static at::Tensor forward(AutogradContext* context, at::TensorList parts, std::int64_t axis) {
    std::vector<std::int64_t> sizes;
    for (const at::Tensor& part : parts) sizes.push_back(part.size(axis));
    context->saved_data["axis"] = axis;
    context->saved_data["sizes"] = sizes;
    return at::cat(parts, axis);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto sizes = context->saved_data["sizes"].toIntVector();
    variable_list parts = gradients[0].split_with_sizes(sizes, context->saved_data["axis"].toInt());
    for (at::Tensor& part : parts) part = part.contiguous();
    parts.emplace_back();  // of the axis
    return parts;
  }
};

struct Sum : Function<Sum> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const std::vector<std::int64_t>& axes,
                            bool keep_dims) {
    std::vector<std::int64_t> row = x.sizes().vec();  // of the result, were all dimensions kept
    for (const std::int64_t axis : axes) row.at(static_cast<std::size_t>(axis < 0 ? axis + x.dim() : axis)) = 1;
    context->saved_data["shape"] = x.sizes().vec();
    context->saved_data["row"] = row;
    return x.sum(axes, keep_dims);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor row = gradients[0].reshape(context->saved_data["row"].toIntVector());
    return {row.expand(context->saved_data["shape"].toIntVector()).contiguous(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor contiguous_permute(const at::Tensor& x, const std::vector<std::int64_t>& permutation) {
  return Permute::apply(x, permutation);
}

at::Tensor contiguous_concat(const Tensors& parts, std::int64_t axis) {
  return Concatenate::apply(at::TensorList(parts), axis);
}

at::Tensor contiguous_sum(const at::Tensor& x, const std::vector<std::int64_t>& axes, bool keep_dims) {
  return Sum::apply(x, axes, keep_dims);
}

}  // namespace sibyl::aten

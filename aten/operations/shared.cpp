// The local parts of operations that ranks share. ATen has no such parts; each is an autograd function, so that backward
// is one reading as well.
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "aten/operations/families.h"

namespace sibyl::aten {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct PartialEmbedding : Function<PartialEmbedding> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table, const at::Tensor& ids) {
    context->save_for_backward({ids});
    context->saved_data["rows"] = table.size(0);
    return at::embedding(table, ids.clamp_min(0)).masked_fill_(ids.lt(0).unsqueeze(-1), 0.0);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor ids = context->get_saved_variables().at(0);
    constexpr std::int64_t elsewhere = -1;  // has no row: skipped, as padding is
    return {at::embedding_dense_backward(gradients.at(0), ids, context->saved_data["rows"].toInt(), elsewhere, false),
            at::Tensor()};
  }
};

struct ClassSums : Function<ClassSums> {
  static variable_list forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& targets,
                               const at::Tensor& shift, std::int64_t axis) {
    const at::Tensor exponentials = at::sub(logits, shift.unsqueeze(axis)).exp_();
    const at::Tensor target = logits.gather(axis, targets.clamp_min(0).unsqueeze(axis)).squeeze(axis).sub_(shift);
    context->save_for_backward({exponentials, targets});
    context->saved_data["axis"] = axis;
    return {exponentials.sum(axis), target.masked_fill_(targets.lt(0), 0.0)};
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &exponentials = saved.at(0), &targets = saved.at(1);
    const std::int64_t axis = context->saved_data["axis"].toInt();
    at::Tensor result = exponentials * gradients.at(0).unsqueeze(axis);
    const at::Tensor of_target = gradients.at(1).masked_fill(targets.lt(0), 0.0);
    result.scatter_add_(axis, targets.clamp_min(0).unsqueeze(axis), of_target.unsqueeze(axis));
    return {result, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

// One number a channel, as x's dimensions have it.
at::Tensor by_channel(const at::Tensor& values, const at::Tensor& x) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape.at(1) = x.size(1);
  return values.reshape(shape);
}

double per_channel(const at::Tensor& x) { return static_cast<double>(x.numel() / x.size(1)); }

// What is normalised by itself, each sample's groups of channels, as channels of one sample.
at::Tensor as_one_sample(const at::Tensor& x, std::int64_t groups) { return x.reshape({1, x.size(0) * groups, -1}); }

struct ChannelMoments : Function<ChannelMoments> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    // Of bf16 the CPU would round them to bf16.
    const at::Tensor values = x.is_cpu() ? x.to(at::kFloat) : x;
    const auto [mean, variance] = at::batch_norm_update_stats(values, nothing, nothing, 0.0);
    return at::stack({mean, variance + mean * mean});
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables().at(0);
    const at::Tensor each = gradients.at(0) / per_channel(x);
    return {at::addcmul(by_channel(each[0], x), x, by_channel(each[1] * 2, x))};
  }
};

struct Moments {
  at::Tensor mean, variance;
};

Moments moments_of(const at::Tensor& statistics) {
  const at::Tensor mean = statistics[0].contiguous();
  return {mean, (statistics[1] - mean * mean).clamp_min_(0.0)};
}

// y = scale (x - mean) r + shift with r = 1 / sqrt(variance + epsilon). As if mean and variance were given: what they do
// to x's gradient comes back through the statistics.
struct NormalizeChannels : Function<NormalizeChannels> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& statistics,
                            const at::Tensor& scale, const at::Tensor& shift, double epsilon) {
    context->save_for_backward({x, statistics, scale});
    context->saved_data["epsilon"] = epsilon;
    const Moments moments = moments_of(statistics);
    return std::get<0>(at::native_batch_norm(x, scale, shift, moments.mean, moments.variance, false, 0.0, epsilon));
  }
  // With S = sum dy and T = sum dy (x - mean) r, the gradient of the variance is -scale r^2 T / 2, that of the mean
  // alone -scale r S; the statistics are the mean and variance + mean^2.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved.at(0), &scale = saved.at(2);
    const double epsilon = context->saved_data["epsilon"].toDouble();
    const Moments moments = moments_of(saved.at(1));
    const auto [of_x, of_scale, of_shift] = at::native_batch_norm_backward(
        gradients.at(0), x, scale, moments.mean, moments.variance, nothing, nothing, false, epsilon,
        {true, true, true});
    const at::Tensor reciprocal = (moments.variance + epsilon).rsqrt_(), scaled = scale * reciprocal;
    const at::Tensor of_variance = of_scale * scaled * reciprocal * -0.5;
    const at::Tensor of_mean = -(of_shift * scaled) - of_variance * moments.mean * 2;
    return {of_x, at::stack({of_mean, of_variance}), of_scale, of_shift, at::Tensor()};
  }
};

// PyTorch's running variance is unbiased.
void take_in(const Moments& moments, double count, double momentum, at::Tensor mean, at::Tensor variance) {
  const at::NoGradGuard no_grad;
  mean.mul_(1.0 - momentum).add_(moments.mean, momentum);
  variance.mul_(1.0 - momentum).add_(moments.variance, momentum * count / std::max(1.0, count - 1.0));
}

}  // namespace

at::Tensor partial_embedding(const at::Tensor& table, const at::Tensor& ids) {
  return PartialEmbedding::apply(table, ids);
}

Tensors run(const ClassStatistics& op, const Tensors& in) {
  return ClassSums::apply(in.at(0), in.at(1).to(at::kLong), in.at(2), op.class_axis);
}

at::Tensor run(const NormStatistics& op, const Tensors& in) {
  const at::Tensor& x = in.at(0);
  if (op.groups == 0) return ChannelMoments::apply(x);
  return ChannelMoments::apply(as_one_sample(x, op.groups)).reshape({2, x.size(0), op.groups});
}

at::Tensor run(const ApplyNorm& op, const Tensors& in) {
  const at::Tensor &x = in.at(0), &statistics = in.at(1);
  const std::int64_t samples = x.size(0), channels = x.size(1);
  const auto given_or = [&](std::size_t index, double value) {
    const at::Tensor given = operand(in, index);
    return given.defined() ? given : at::full({channels}, value, statistics.options().requires_grad(false));
  };
  const at::Tensor scale = given_or(2, 1.0), shift = given_or(3, 0.0);
  if (operand(in, 4).defined() && op.momentum > 0.0)
    take_in(moments_of(statistics.detach()), per_channel(x) * static_cast<double>(op.parts), op.momentum, in.at(4),
            in.at(5));
  if (op.groups == 0) return NormalizeChannels::apply(x, statistics, scale, shift, op.epsilon);
  const at::Tensor spread =
      statistics.unsqueeze(-1).expand({2, samples, op.groups, channels / op.groups}).reshape({2, samples * channels});
  return NormalizeChannels::apply(as_one_sample(x, channels), spread, scale.repeat({samples}), shift.repeat({samples}),
                                  op.epsilon)
      .reshape(x.sizes());
}

}  // namespace sibyl::aten

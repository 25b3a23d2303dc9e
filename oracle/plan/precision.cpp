#include "oracle/plan/precision.h"

#include <algorithm>

namespace sibyl {
namespace {

// Autocast lists layer_norm and group_norm for f32; batch_norm and instance_norm are in none of its lists and run in
// the type of their input, with their scale and shift in f32.
bool norm_in_full(NormalizationKind kind) {
  return kind != NormalizationKind::batch && kind != NormalizationKind::instance;
}

// Parts that ranks share: a batch-norm has no groups, an instance norm one for each channel.
bool parts_in_full(std::int64_t groups, const Shape& images) { return groups > 0 && groups != images.at(1); }

bool computes_in_full(const Stage& stage, const Compute& compute) {
  const Attributes& attributes = compute.attributes;
  const auto images = [&] { return stage[compute.inputs.front()].shape; };
  if (const auto* norm = std::get_if<Normalization>(&attributes)) return norm_in_full(norm->kind);
  if (const auto* statistics = std::get_if<NormStatistics>(&attributes))
    return parts_in_full(statistics->groups, images());
  if (const auto* apply = std::get_if<ApplyNorm>(&attributes)) return parts_in_full(apply->groups, images());
  const bool by_its_file = std::visit(
      [](const auto& op) {
        return requires { op.in_full; };
      },
      attributes);
  return by_its_file ||
         is_any<Softmax, CrossEntropy, ClassStatistics, MeanSquaredError, LocalResponseNorm, OptimizerUpdate>(
             attributes);
}

bool is_half(Precision precision) {
  return precision == Precision::fp16 || precision == Precision::bf16 || precision == Precision::fp8;
}

}  // namespace

DType operation_type(const Stage& stage, const Compute& compute, const std::vector<DType>& operands,
                     Precision precision) {
  const Attributes& attributes = compute.attributes;
  if (precision == Precision::fp8 && is_any<Linear>(attributes)) return DType::f8e4m3;
  if (is_any<Convolution, Linear, GroupedLinear, MatMul, Attention>(attributes)) return compute_type(precision);
  if (!is_half(precision) || computes_in_full(stage, compute)) return DType::f32;
  if (is_any<Dispatch, Combine>(attributes)) return compute_type(precision);  // as the experts between them
  const bool all_half = !operands.empty() && std::all_of(operands.begin(), operands.end(),
                                                         [&](DType type) { return type == compute_type(precision); });
  return all_half ? compute_type(precision) : DType::f32;
}

DType half_model_type(const Attributes& attributes, Precision precision) {
  const bool in_full =
      is_any<CrossEntropy, ClassStatistics, MeanSquaredError, LocalResponseNorm, OptimizerUpdate>(attributes);
  if (precision == Precision::fp8 && is_any<Linear>(attributes)) return DType::f8e4m3;
  return in_full ? DType::f32 : compute_type(precision);
}

bool has_half_weights(const Strategy& strategy) { return strategy.half_weights && is_half(strategy.precision); }

bool sums_in_full(const Strategy& strategy) { return has_half_weights(strategy) && strategy.fp32_gradients; }

}  // namespace sibyl

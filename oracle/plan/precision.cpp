#include "oracle/plan/precision.h"

#include <algorithm>

namespace sibyl {
namespace {

template <class... Ops>
bool is_any(const Attributes& attributes) {
  return (std::holds_alternative<Ops>(attributes) || ...);
}

bool computes_in_full(const Attributes& attributes) {
  if (const auto* norm = std::get_if<Normalization>(&attributes)) return norm->kind != NormalizationKind::batch;
  if (const auto* statistics = std::get_if<NormStatistics>(&attributes)) return statistics->groups > 0;
  if (const auto* apply = std::get_if<ApplyNorm>(&attributes)) return apply->groups > 0;
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

DType operation_type(const Attributes& attributes, const std::vector<DType>& operands, Precision precision) {
  if (precision == Precision::fp8 && is_any<Linear>(attributes)) return DType::f8e4m3;
  if (is_any<Convolution, Linear, GroupedLinear, MatMul, Attention>(attributes)) return compute_type(precision);
  if (!is_half(precision) || computes_in_full(attributes)) return DType::f32;
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

}  // namespace sibyl

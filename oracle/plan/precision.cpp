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
  return is_any<Softmax, CrossEntropy, ClassStatistics, MeanSquaredError, LocalResponseNorm, OptimizerUpdate>(attributes);
}

}  // namespace

DType operation_type(const Attributes& attributes, const std::vector<DType>& operands, Precision precision) {
  if (is_any<Convolution, Linear, MatMul, Attention>(attributes)) return compute_type(precision);
  const bool half = precision == Precision::fp16 || precision == Precision::bf16;
  if (!half || computes_in_full(attributes)) return DType::f32;
  const bool all_half = !operands.empty() && std::all_of(operands.begin(), operands.end(), [&](DType type) {
    return type == compute_type(precision);
  });
  return all_half ? compute_type(precision) : DType::f32;
}

}  // namespace sibyl

#include "oracle/plan/synchronised_norms.h"

#include "oracle/plan/sharding/emitter.h"

namespace sibyl {
namespace {

const Normalization* batch_norm(const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  const auto* norm = compute ? std::get_if<Normalization>(&compute->attributes) : nullptr;
  return norm && norm->kind == NormalizationKind::batch ? norm : nullptr;
}

void add_synchronised(Stage& stage, const Compute& compute, const Normalization& norm, int replicas) {
  const LocalTensorId x = compute.inputs[0];
  Emitter emit(stage, MeshAxis::data, compute.operation, compute.dtype, stage[x]);
  const LocalTensorId own = emit.compute(NormStatistics{}, {x}, Shape{2, stage[x].shape.at(1)});
  Compute normalize = compute;
  normalize.attributes = ApplyNorm{0, replicas, norm.epsilon, norm.momentum};
  normalize.inputs.insert(normalize.inputs.begin() + 1, emit.mean(own, replicas));
  constexpr std::uint32_t of_x = 1;
  const std::uint32_t others = compute.gradients & ~of_x;
  normalize.gradients = (compute.gradients & of_x) | others << 1;
  if (stage[own].requires_gradient) normalize.gradients |= 2U;
  stage.steps.push_back(std::move(normalize));
}

}  // namespace

Stage with_synchronised_norms(const Stage& stage, const Strategy& strategy) {
  Stage result;
  result.tensors = stage.tensors;
  for (const Step& step : stage.steps) {
    if (const Normalization* norm = batch_norm(step))
      add_synchronised(result, std::get<Compute>(step), *norm, strategy.data);
    else
      result.steps.push_back(step);
  }
  return result;
}

}  // namespace sibyl

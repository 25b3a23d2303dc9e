#include "oracle/plan/sharding/emitter.h"

namespace sibyl {

LocalTensorId Emitter::add(const Shape& shape, bool gradient) {
  LocalTensor tensor{like_.origin, shape, like_.dtype, TensorKind::activation, gradient};
  stage_.tensors.push_back(std::move(tensor));
  return LocalTensorId{stage_.tensors.size() - 1};
}

std::vector<LocalTensorId> Emitter::compute(Attributes operation, const std::vector<LocalTensorId>& inputs,
                                            const std::vector<Shape>& results, bool gradient) {
  std::uint32_t gradients = 0;
  for (std::size_t i = 0; gradient && i < inputs.size(); ++i)
    if (inputs[i].valid() && stage_[inputs[i]].requires_gradient) gradients |= 1U << i;
  std::vector<LocalTensorId> outputs;
  for (const Shape& shape : results) outputs.push_back(add(shape, gradients != 0));
  stage_.steps.push_back(Compute{operation_, std::move(operation), inputs, outputs, dtype_, gradients});
  return outputs;
}

LocalTensorId Emitter::exchange(LocalTensorId input, Motion forward, Motion backward) {
  Conversion conversion;
  conversion.forward.motion = forward;
  conversion.backward.motion = backward;
  return exchange(input, conversion, 1);  // sums keep their shape, whatever the number of ranks
}

LocalTensorId Emitter::exchange(LocalTensorId input, const Conversion& conversion, int ways) {
  const bool gradient = stage_[input].requires_gradient;
  const LocalTensorId output = add(result_shape(conversion.forward, stage_[input].shape, ways), gradient);
  stage_.steps.push_back(
      Exchange{axis_, input, output, conversion.forward, gradient ? conversion.backward : Transfer{}});
  return output;
}

LocalTensorId Emitter::mean(LocalTensorId own, int ways) {
  if (ways == 1) return own;
  const Shape shape = stage_[own].shape;
  const LocalTensorId share = compute(Unary{UnaryKind::scale_shift, 1.0 / ways, 0.0}, {own}, shape);
  return exchange(share, Motion::all_reduce, Motion::all_reduce);
}

void Emitter::mark(LocalTensorId made, const Layout& layout) {
  std::vector<PartOf>& cuts = stage_.tensors[made.index()].cuts;
  cuts = like_.cuts;
  if (layout.is_split()) cuts.push_back({axis_, layout});
}

}  // namespace sibyl

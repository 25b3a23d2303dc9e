// Updates parameters in place exactly as torch.optim does, tensor by tensor (its single-tensor, not fused, path).
//
// SGD       w -= lr g
// momentum  m = momentum m + g;  w -= lr m
// Adam      m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g²;  w -= lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps)
// AdamW     w *= 1 - lr decay first, then Adam
// With weight_decay the others use g + decay w in place of g.
#pragma once

#include <torch/types.h>
#include <cstdint>

#include "models/operations/operations.h"

namespace sibyl::aten {

// torch.optim's defaults, but lr, which it demands for SGD.
struct OptimizerSettings {
  double learning_rate = 0.01;
  double momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0.01;
};

// What the optimizer keeps for one parameter between steps: nothing, a momentum, or two moments.
struct OptimizerState {
  at::Tensor first, second;
  std::int64_t steps = 0;
};

OptimizerState make_optimizer_state(const OptimizerUpdate& update, const at::Tensor& parameter);

// Grad mode is switched off inside.
void update_parameter(const OptimizerUpdate& update, const OptimizerSettings& settings, OptimizerState& state,
                      at::Tensor& parameter, const at::Tensor& gradient);

}  // namespace sibyl::aten

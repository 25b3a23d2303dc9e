// Updates parameters in place exactly as torch.optim does, tensor by tensor (its single-tensor, not fused, path).
//
// SGD       w -= lr g
// momentum  m = momentum m + g;  w -= lr m
// Adam      m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g²;  w -= lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps)
// AdamW     w *= 1 - lr decay first, then Adam
// With weight_decay these use g + decay w in place of g. Two that torch.optim lacks, after their papers, decay built in:
// LAMB      u = mh / (sqrt(vh) + eps) + decay w, mh and vh Adam's moments unbiased;  w -= lr |w| / |u| u
//           (You et al., "Large Batch Optimization for Deep Learning", ICLR 2020, algorithm 2)
// LARS      r = trust |w| / (|g| + decay |w|);  m = momentum m + lr r (g + decay w);  w -= m
//           (You, Gitman & Ginsburg, "Large Batch Training of Convolutional Networks", 2017, algorithm 1)
// Where a norm is zero the ratio is one. Norms are those of the whole tensor.
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
  double trust = 0.001;         // LARS
  double lamb_epsilon = 1e-6;
};

// What the optimizer keeps for one parameter between steps: nothing, a momentum, or two moments.
struct OptimizerState {
  at::Tensor first, second;
  std::int64_t steps = 0;
};

OptimizerState make_optimizer_state(const OptimizerUpdate& update, const at::Tensor& parameter);

// LAMB and LARS take norms of whole tensors; the others update each element by itself.
bool takes_norms(OptimizerKind kind);

// Two squared norms of one tensor: the parameter's, and the gradient's (LARS) or the direction's (LAMB).
struct SquaredNorms {
  double parameter = 0.0, step = 0.0;
};

// An update in two halves, for tensors that several ranks hold parts of: what norms are taken of, then, with the norms
// of the whole, the update. `direction` is the gradient (LARS) or LAMB's u.
at::Tensor begin_update(const OptimizerUpdate& update, const OptimizerSettings& settings, OptimizerState& state,
                        const at::Tensor& parameter, const at::Tensor& gradient);
SquaredNorms squared_norms(const at::Tensor& parameter, const at::Tensor& direction);
void finish_update(const OptimizerUpdate& update, const OptimizerSettings& settings, OptimizerState& state,
                   at::Tensor& parameter, const at::Tensor& direction, const SquaredNorms& whole);

// Grad mode is switched off inside.
void update_parameter(const OptimizerUpdate& update, const OptimizerSettings& settings, OptimizerState& state,
                      at::Tensor& parameter, const at::Tensor& gradient);

}  // namespace sibyl::aten

#include "aten/optimizer.h"

#include <cmath>

namespace sibyl::aten {
namespace {

bool has_moments(OptimizerKind kind) { return kind == OptimizerKind::adam || kind == OptimizerKind::adamw; }

void adam(const OptimizerSettings& settings, OptimizerState& state, at::Tensor& parameter, const at::Tensor& gradient) {
  state.first.mul_(settings.beta1).add_(gradient, 1.0 - settings.beta1);
  state.second.mul_(settings.beta2).addcmul_(gradient, gradient, 1.0 - settings.beta2);
  const auto t = static_cast<double>(state.steps);
  const double correction1 = 1.0 - std::pow(settings.beta1, t), correction2 = 1.0 - std::pow(settings.beta2, t);
  const at::Tensor denominator = state.second.sqrt().div_(std::sqrt(correction2)).add_(settings.epsilon);
  parameter.addcdiv_(state.first, denominator, -settings.learning_rate / correction1);
}

}  // namespace

OptimizerState make_optimizer_state(const OptimizerUpdate& update, const at::Tensor& parameter) {
  const at::NoGradGuard no_grad;
  OptimizerState state;
  if (update.kind != OptimizerKind::sgd) state.first = at::zeros_like(parameter);
  if (has_moments(update.kind)) state.second = at::zeros_like(parameter);
  return state;
}

void update_parameter(const OptimizerUpdate& update, const OptimizerSettings& settings, OptimizerState& state,
                      at::Tensor& parameter, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  ++state.steps;
  if (update.kind == OptimizerKind::adamw) {
    parameter.mul_(1.0 - settings.learning_rate * settings.decay);
    return adam(settings, state, parameter, gradient);
  }
  const at::Tensor g = update.weight_decay ? gradient.add(parameter, settings.decay) : gradient;
  if (update.kind == OptimizerKind::adam) return adam(settings, state, parameter, g);
  if (update.kind == OptimizerKind::sgd) {
    parameter.add_(g, -settings.learning_rate);
    return;
  }
  state.first.mul_(settings.momentum).add_(g);
  parameter.add_(state.first, -settings.learning_rate);
}

}  // namespace sibyl::aten

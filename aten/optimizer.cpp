#include "aten/optimizer.h"

#include <cmath>

namespace sibyl::aten {
namespace {

bool has_moments(OptimizerKind kind) {
  return kind == OptimizerKind::adam || kind == OptimizerKind::adamw || kind == OptimizerKind::lamb;
}

void average(const OptimizerSettings& settings, OptimizerState& state, const at::Tensor& gradient) {
  state.first.mul_(settings.beta1).add_(gradient, 1.0 - settings.beta1);
  state.second.mul_(settings.beta2).addcmul_(gradient, gradient, 1.0 - settings.beta2);
}

void adam(const OptimizerSettings& settings, OptimizerState& state, at::Tensor& parameter, const at::Tensor& gradient) {
  average(settings, state, gradient);
  const auto t = static_cast<double>(state.steps);
  const double correction1 = 1.0 - std::pow(settings.beta1, t), correction2 = 1.0 - std::pow(settings.beta2, t);
  const at::Tensor denominator = state.second.sqrt().div_(std::sqrt(correction2)).add_(settings.epsilon);
  parameter.addcdiv_(state.first, denominator, -settings.learning_rate / correction1);
}

at::Tensor lamb_direction(const OptimizerSettings& settings, OptimizerState& state, const at::Tensor& parameter,
                          const at::Tensor& gradient) {
  average(settings, state, gradient);
  const auto t = static_cast<double>(state.steps);
  const double correction1 = 1.0 - std::pow(settings.beta1, t), correction2 = 1.0 - std::pow(settings.beta2, t);
  at::Tensor direction = state.second.sqrt().div_(std::sqrt(correction2)).add_(settings.lamb_epsilon).reciprocal_();
  return direction.mul_(state.first).div_(correction1).add_(parameter, settings.decay);
}

double ratio(double parameter, double step) { return parameter > 0.0 && step > 0.0 ? parameter / step : 1.0; }

}  // namespace

bool takes_norms(OptimizerKind kind) { return kind == OptimizerKind::lamb || kind == OptimizerKind::lars; }

at::Tensor begin_update(const OptimizerUpdate& update, const OptimizerSettings& settings, OptimizerState& state,
                        const at::Tensor& parameter, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  ++state.steps;
  return update.kind == OptimizerKind::lamb ? lamb_direction(settings, state, parameter, gradient) : gradient;
}

SquaredNorms squared_norms(const at::Tensor& parameter, const at::Tensor& direction) {
  const at::NoGradGuard no_grad;
  const auto square = [](const at::Tensor& t) {
    const double norm = t.norm().item<double>();
    return norm * norm;
  };
  return {square(parameter), square(direction)};
}

void finish_update(const OptimizerUpdate& update, const OptimizerSettings& settings, OptimizerState& state,
                   at::Tensor& parameter, const at::Tensor& direction, const SquaredNorms& whole) {
  const at::NoGradGuard no_grad;
  const double size = std::sqrt(whole.parameter), step = std::sqrt(whole.step);
  if (update.kind == OptimizerKind::lamb) {
    parameter.add_(direction, -settings.learning_rate * ratio(size, step));
    return;
  }
  const double trust = size > 0.0 && step > 0.0 ? settings.trust * size / (step + settings.decay * size) : 1.0;
  const double rate = settings.learning_rate * trust;
  state.first.mul_(settings.momentum).add_(direction, rate).add_(parameter, rate * settings.decay);
  parameter.sub_(state.first);
}

OptimizerState make_optimizer_state(const OptimizerUpdate& update, const at::Tensor& parameter) {
  const at::NoGradGuard no_grad;
  OptimizerState state;
  if (update.kind != OptimizerKind::sgd) state.first = at::zeros_like(parameter);
  if (has_moments(update.kind)) state.second = at::zeros_like(parameter);
  return state;
}

void update_parameter(const OptimizerUpdate& update, const OptimizerSettings& settings, OptimizerState& state,
                      at::Tensor& parameter, const at::Tensor& gradient) {
  if (takes_norms(update.kind)) {
    const at::Tensor direction = begin_update(update, settings, state, parameter, gradient);
    finish_update(update, settings, state, parameter, direction, squared_norms(parameter, direction));
    return;
  }
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

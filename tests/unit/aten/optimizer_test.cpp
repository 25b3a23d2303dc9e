#include "aten/optimizer.h"

#include <cmath>

#include "tests/unit/aten/values.h"

namespace sibyl::aten {
namespace {

// Two steps from w = 1 with gradients 0.5 and 0.25.
double two_steps(OptimizerKind kind, bool decays, const OptimizerSettings& settings) {
  at::Tensor w = tensor({1}, {1}).requires_grad_();
  const OptimizerUpdate update{kind, decays};
  OptimizerState state = make_optimizer_state(update, w);
  for (const double g : {0.5, 0.25}) update_parameter(update, settings, state, w, tensor({g}, {1}));
  return w.item<double>();
}

constexpr OptimizerSettings settings{.learning_rate = 0.1, .momentum = 0.9, .decay = 0.1};

TEST(Optimizer, sgd) {
  EXPECT_NEAR(two_steps(OptimizerKind::sgd, false, settings), 1 - 0.1 * 0.75, 1e-6);
  // With decay: 1 - 0.1 (0.5 + 0.1) = 0.94, then 0.94 - 0.1 (0.25 + 0.094).
  EXPECT_NEAR(two_steps(OptimizerKind::sgd, true, settings), 0.9056, 1e-6);
}

TEST(Optimizer, momentum) {
  // m = 0.5, then 0.45 + 0.25 = 0.7.
  EXPECT_NEAR(two_steps(OptimizerKind::momentum, false, settings), 1 - 0.05 - 0.07, 1e-6);
}

// Adam in double precision, as the paper writes it (Kingma & Ba, algorithm 1).
double adam_by_hand(double decay) {
  double w = 1, m = 0, v = 0;
  int t = 0;
  for (const double g : {0.5, 0.25}) {
    ++t;
    w *= 1 - 0.1 * decay;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    w -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
  return w;
}

TEST(Optimizer, adam_and_adamw) {
  EXPECT_NEAR(two_steps(OptimizerKind::adam, false, settings), adam_by_hand(0.0), 1e-5);
  EXPECT_NEAR(two_steps(OptimizerKind::adamw, false, settings), adam_by_hand(0.1), 1e-5);
}

// One step each, w = (3, 4), |w| = 5, g = (0, 2), lr 0.1, decay 0.1.
// LARS: ratio 0.001 * 5 / (2 + 0.1 * 5) = 0.002; m = 0.1 * 0.002 * (0 + 0.3, 2 + 0.4) = (0.00006, 0.00048).
// A second step with the same g: |w| and so the ratio differ by 1e-4 of themselves; m = 0.9 m + about the same again.
TEST(Optimizer, lars_scales_each_tensor_by_its_norms) {
  at::Tensor w = tensor({3, 4}, {2}).requires_grad_();
  const OptimizerUpdate update{OptimizerKind::lars, false};
  OptimizerState state = make_optimizer_state(update, w);
  EXPECT_FALSE(state.second.defined());
  update_parameter(update, settings, state, w, tensor({0, 2}, {2}));
  EXPECT_NEAR(w[0].item<double>(), 3 - 0.00006, 1e-6);
  EXPECT_NEAR(w[1].item<double>(), 4 - 0.00048, 1e-6);
  update_parameter(update, settings, state, w, tensor({0, 2}, {2}));
  EXPECT_NEAR(w[1].item<double>(), 4 - 0.00048 - 1.9 * 0.00048, 2e-6);
}

// LAMB's first step: the unbiased moments are g and g^2, so u = g / (|g| + eps) + 0.1 w = (0.3, 1.4),
// |u| = sqrt(0.09 + 1.96) = 1.431782; w -= 0.1 * 5 / 1.431782 * u.
TEST(Optimizer, lamb_scales_adams_direction_to_the_weights) {
  at::Tensor w = tensor({3, 4}, {2}).requires_grad_();
  const OptimizerUpdate update{OptimizerKind::lamb, false};
  OptimizerState state = make_optimizer_state(update, w);
  update_parameter(update, settings, state, w, tensor({0, 2}, {2}));
  EXPECT_NEAR(w[0].item<double>(), 3 - 0.5 / 1.431782 * 0.3, 1e-5);
  EXPECT_NEAR(w[1].item<double>(), 4 - 0.5 / 1.431782 * 1.4, 1e-5);
}

// Halves of a tensor, with the norms of the whole, are updated as the whole is.
TEST(Optimizer, parts_with_the_norms_of_the_whole_equal_the_whole) {
  for (const OptimizerKind kind : {OptimizerKind::lamb, OptimizerKind::lars}) {
    const OptimizerUpdate update{kind, false};
    at::Tensor whole = tensor({1, -2, 3, 0.5}, {4});
    const at::Tensor g = tensor({0.5, 0.25, -1, 2}, {4});
    std::vector<at::Tensor> parts = {whole.narrow(0, 0, 1).clone(), whole.narrow(0, 1, 3).clone()};
    const std::vector<at::Tensor> gradients = {g.narrow(0, 0, 1), g.narrow(0, 1, 3)};
    OptimizerState state = make_optimizer_state(update, whole);
    update_parameter(update, settings, state, whole, g);
    std::vector<OptimizerState> states;
    std::vector<at::Tensor> directions;
    SquaredNorms sum;
    for (std::size_t i = 0; i < 2; ++i) {
      states.push_back(make_optimizer_state(update, parts[i]));
      directions.push_back(begin_update(update, settings, states[i], parts[i], gradients[i]));
      const SquaredNorms own = squared_norms(parts[i], directions[i]);
      sum.parameter += own.parameter, sum.step += own.step;
    }
    for (std::size_t i = 0; i < 2; ++i) finish_update(update, settings, states[i], parts[i], directions[i], sum);
    EXPECT_TRUE(at::allclose(at::cat(parts), whole, 1e-6, 1e-7)) << "kind " << static_cast<int>(kind);
  }
}

TEST(Optimizer, a_tensor_of_zeros_takes_a_plain_step) {
  at::Tensor w = tensor({0, 0}, {2});
  const OptimizerUpdate update{OptimizerKind::lars, false};
  OptimizerState state = make_optimizer_state(update, w);
  update_parameter(update, settings, state, w, tensor({1, 2}, {2}));
  EXPECT_NEAR(w[1].item<double>(), -0.2, 1e-6);
}

TEST(Optimizer, keeps_state_of_the_parameters_shape) {
  const at::Tensor w = at::ones({2, 3});
  EXPECT_FALSE(make_optimizer_state({OptimizerKind::sgd, false}, w).first.defined());
  EXPECT_EQ(make_optimizer_state({OptimizerKind::momentum, false}, w).first.sizes(), w.sizes());
  EXPECT_FALSE(make_optimizer_state({OptimizerKind::momentum, false}, w).second.defined());
  EXPECT_EQ(make_optimizer_state({OptimizerKind::adamw, false}, w).second.sizes(), w.sizes());
}

}  // namespace
}  // namespace sibyl::aten
